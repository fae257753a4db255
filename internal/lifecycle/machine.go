package lifecycle

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockfx/lockfx"
)

// Machine is one lock: at most one [Hold] at a time, over and over, until it is
// disposed of. Its methods are safe for concurrent use. State, Held and Token
// take no mutex and allocate nothing.
type Machine struct {
	cfg         Config
	noAnswer    error           // the cause when a renewal that can be tried again takes longer than a heartbeat
	tooSlow     error           // the cause when a release takes longer than its timeout
	callTooSlow error           // the cause when a call takes longer than the call timeout
	tooLate     error           // the cause when an acquisition takes longer than its lease can be trusted
	disposing   context.Context // ends when Dispose is called
	dispose     func()
	state       atomic.Uint32        // a lockfx.State; written under mu
	cur         atomic.Pointer[Hold] // from the grant until the release is done; written under mu

	mu       sync.Mutex // guards what follows, and the fields of a Hold that say so
	last     lockfx.Token
	disposed bool
	over     bool          // the disposal was announced
	inUse    bool          // an acquisition, a run or a release is under way
	free     chan struct{} // made by who waits for inUse to become false, and closed then
	vacant   chan struct{} // made by who waits for Idle or Released, and closed then
	pending  *Hold         // the acquisition under way
	events   events

	callbacks []func(lockfx.Event) // the observers, and OnLost after them
}

// New returns an idle machine, or the faults of cfg.
func New(cfg Config) (*Machine, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	disposing, dispose := context.WithCancelCause(context.Background())
	return &Machine{
		disposing:   disposing,
		dispose:     func() { dispose(lockfx.ErrDisposed) },
		callTooSlow: fmt.Errorf("%w: no answer within the call timeout of %v", lockfx.ErrTimeout, cfg.CallTimeout),
		tooLate:     fmt.Errorf("the store did not answer while its lease could still be trusted, and the ttl is %v", cfg.TTL),
		cfg:         cfg,
		noAnswer:    fmt.Errorf("%w: no answer within the heartbeat of %v", lockfx.ErrTimeout, cfg.Heartbeat),
		tooSlow:     fmt.Errorf("%w: no answer within the release timeout of %v", lockfx.ErrTimeout, cfg.ReleaseTimeout),
		last:        cfg.Last,
		callbacks:   cfg.callbacks(),
	}, nil
}

// State returns where the lock stands.
func (m *Machine) State() lockfx.State { return lockfx.State(m.state.Load()) }

// Held reports whether a lease is held and its local deadline has not passed.
func (m *Machine) Held() bool {
	h := m.cur.Load()
	return h != nil && h.Held()
}

// Token returns the fencing token of the lease that is held, or 0.
func (m *Machine) Token() lockfx.Token {
	if h := m.cur.Load(); h != nil {
		return h.Token()
	}
	return 0
}

// Key returns the key in the store.
func (m *Machine) Key() string { return m.cfg.Key }

// Disposing returns a context that ends when Dispose is called, before what is under way
// is cancelled. Its cause is [lockfx.ErrDisposed].
func (m *Machine) Disposing() context.Context { return m.disposing }

// Last returns the last token that was accepted, or 0.
func (m *Machine) Last() lockfx.Token {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

// Disposed reports whether Dispose was called.
func (m *Machine) Disposed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.disposed
}

// after arms a timer, or returns nil if the clock has none: also for a nil pointer of
// the clock's own type, whose lease nobody would end.
func (m *Machine) after(d time.Duration, f func()) lockfx.Timer {
	timer := m.cfg.Clock.AfterFunc(d, f)
	if v := reflect.ValueOf(timer); v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	return timer
}

// endUse ends what inUse stands for. m.mu is held.
func (m *Machine) endUse() {
	m.inUse = false
	if m.free != nil {
		close(m.free)
		m.free = nil
	}
}

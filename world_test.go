package lockfx_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// world is what replicas share, and a journal of what they did.
type world struct {
	store  *cutStore
	ledger *ledger

	mu  sync.Mutex
	did []string
}

func newWorld() *world {
	return &world{store: &cutStore{MemoryStore: fxlock.NewMemoryStore()}, ledger: new(ledger)}
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.did = append(w.did, fmt.Sprintf(format, args...))
}

func (w *world) expect(t *testing.T, want ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.did, want) {
		t.Errorf("what happened: %q\nwant: %q", w.did, want)
	}
}

// holder returns the token that the store keeps for the job, or 0.
func (w *world) holder(t *testing.T) lockfx.Token {
	t.Helper()
	lease, err := w.store.Inspect(context.Background(), "nightly")
	if err != nil {
		t.Error(err)
	}
	return lease.Token
}

// cutStore refuses renewals while it is cut.
type cutStore struct {
	*fxlock.MemoryStore
	cut atomic.Bool
}

func (s *cutStore) Renew(ctx context.Context, key string, token lockfx.Token, ttl time.Duration) (bool, error) {
	if s.cut.Load() {
		return false, nil
	}
	return s.MemoryStore.Renew(ctx, key, token, ttl)
}

// ledger is the resource: it remembers the greatest token and refuses smaller ones.
type ledger struct {
	mu      sync.Mutex
	fence   lockfx.Token
	entries []string
}

func (l *ledger) write(fence lockfx.Token, entry string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if fence < l.fence || !fence.Valid() {
		return fmt.Errorf("write %q: %w", entry, lockfx.ErrStaleToken)
	}
	l.fence, l.entries = fence, append(l.entries, entry)
	return nil
}

// database is a connection of one replica; it is closed with the application.
type database struct {
	*ledger
	closed atomic.Bool
}

func (w *world) newDatabase(lc fx.Lifecycle) *database {
	db := &database{ledger: w.ledger}
	lc.Append(fx.StopHook(func() { db.closed.Store(true); w.note("database closes") }))
	return db
}

func (d *database) write(fence lockfx.Token, entry string) error {
	if d.closed.Load() {
		return errors.New("the database is closed")
	}
	return d.ledger.write(fence, entry)
}

// nightly is the job as the scheduler knows it: it does not know of a lock.
type nightly func(context.Context) error

// scheduler runs the job once, when it starts.
type scheduler struct {
	job  nightly
	err  error
	done chan struct{}
}

func (w *world) newScheduler(lc fx.Lifecycle, job nightly) *scheduler {
	s := &scheduler{job: job, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	lc.Append(fx.StartStopHook(func() {
		go func() {
			defer close(s.done)
			s.err = job(ctx)
		}()
	}, func() {
		w.note("scheduler stops")
		cancel()
		<-s.done
	}))
	return s
}

// replica is one application of the world, whose job is body.
func (w *world) replica(body any, opts ...fx.Option) (*fx.App, *scheduler) {
	var s *scheduler
	app := fx.New(append([]fx.Option{
		fx.NopLogger,
		fx.Provide(w.newDatabase, w.newScheduler, func() lockfx.Store { return w.store }),
		fxlock.Module("nightly", fxlock.StoreFromGraph(), fxlock.Body[nightly](body)),
		fx.Populate(&s),
	}, opts...)...)
	return app, s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

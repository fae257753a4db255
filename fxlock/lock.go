package fxlock

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/stop"
	"github.com/lockfx/lockfx/internal/lifecycle"
	"github.com/lockfx/lockfx/internal/queue"
	"github.com/lockfx/lockfx/internal/runscope"
)

// Lock is one lock of an application. It is safe for concurrent use; State, Held
// and Token take no mutex and allocate nothing.
//
// One Lock is held by one caller at a time: while a run is under way, another Run
// or Do on it returns a [lockfx.NotAcquiredError] whose Self is true, or queues with
// [Wait]. A caller that does not wait cannot jump the queue.
type Lock struct {
	settings   *settings
	store      lockfx.Store
	logger     *zap.Logger // nil when the application has none
	shared     map[runscope.Key]reflect.Value
	sources    sync.Map // from the type of a body to its *plan.Source or error
	queue      *queue.Queue
	predicates sync.Map // from a *condition of the lock to its *predicate

	teardownOver error // the cause when a teardown takes too long

	stopping *stop.Member // of the application's stop
	all      stop.All     // of all locks of the application, this one too

	restarting sync.Mutex           // guards what follows
	earlier    []*lifecycle.Machine // of earlier starts, as long as something runs on them
	machine    atomic.Pointer[lifecycle.Machine]
}

// newLock makes a lock over store. The settings are sound.
func newLock(s *settings, store lockfx.Store, logger *zap.Logger) (*Lock, error) {
	if s.logger != nil {
		logger = s.logger
	}
	l := &Lock{
		settings: s, store: store, logger: logger, queue: queue.New(), stopping: new(stop.Member), // until it joins an application
		teardownOver: fmt.Errorf("%w: the teardown timeout of %v is over", lockfx.ErrTimeout, s.teardownTimeout),
	}
	if l.store == nil {
		l.store = NewMemoryStore(MemoryStoreClock(s.clock.Now))
		warnOfMemory(logger, s.name, s.key)
	}
	return l, l.renew(0)
}

// renew gives the lock a fresh machine whose tokens exceed last.
func (l *Lock) renew(last lockfx.Token) error {
	cfg := l.settings.lifecycle(l.store)
	cfg.Last = last
	if l.logger != nil {
		cfg.Observers = append([]func(lockfx.Event){logEvents(l.logger)}, cfg.Observers...)
	}
	m, err := lifecycle.New(cfg)
	if err != nil {
		return err
	}
	l.machine.Store(m)
	return nil
}

// hook starts and stops the lock with an application. A lock that was stopped is
// made anew by the next start; it keeps the last token.
func (l *Lock) hook() fx.Hook {
	return fx.Hook{
		OnStart: func(context.Context) error {
			l.restarting.Lock()
			defer l.restarting.Unlock()
			l.stopping.Restart()
			if m := l.machine.Load(); m.Disposed() {
				l.earlier = append(l.stillRunning(), m)
				return l.renew(m.Last())
			}
			return nil
		},
		OnStop: l.stop,
	}
}

// stop disposes of the lock and then closes its own store, unless something is still under
// way that needs it for the release: of this start, or of an earlier one.
func (l *Lock) stop(ctx context.Context) error {
	ctx = l.stopBegins(ctx)
	err := l.stopping.Once(l.Dispose(ctx))
	closer, ok := l.store.(lockfx.Closer)
	if !ok || !l.settings.store.owned() || l.inUse() {
		return err
	}
	if closing := closer.Close(ctx); closing != nil {
		err = join(err, fmt.Errorf("close the store of %q: %w", l.Key(), closing))
	}
	return err
}

// inUse reports whether a run of any start is still under way.
func (l *Lock) inUse() bool {
	l.restarting.Lock()
	defer l.restarting.Unlock()
	l.earlier = l.stillRunning()
	return l.State() != lockfx.StateReleased || len(l.earlier) > 0
}

// stillRunning returns the machines of earlier starts that something runs on. l.restarting
// is held.
func (l *Lock) stillRunning() []*lifecycle.Machine {
	return slices.DeleteFunc(l.earlier, func(m *lifecycle.Machine) bool { return m.State() == lockfx.StateReleased })
}

// Key returns the key in the store.
func (l *Lock) Key() string { return l.settings.key }

// State returns the state of the lock.
func (l *Lock) State() lockfx.State { return l.machine.Load().State() }

// Held reports whether a lease is held and its local deadline has not passed.
func (l *Lock) Held() bool { return l.machine.Load().Held() }

// Token returns the fencing token of the current lease, or 0.
func (l *Lock) Token() lockfx.Token { return l.machine.Load().Token() }

// Acquire asks the store once, for a hold without a body. [Lock.Run] and [Lock.Do] are safer,
// since they always release. ctx bounds the attempt, not the hold.
//
// It returns true only for a valid grant whose token exceeds the last one. Contention is
// (false, nil). These are (false, error): an outage ([lockfx.ErrStore]), a malformed grant
// ([lockfx.ErrBadGrant]), a token that does not rise ([lockfx.ErrFenceRegressed]), a ctx that
// has ended, and a disposed lock ([lockfx.ErrDisposed]). While the lock is not Idle or Released,
// or others wait for it ([Wait]), it returns [lockfx.ErrNotIdle] at once and changes nothing.
func (l *Lock) Acquire(ctx context.Context) (bool, error) {
	m := l.machine.Load()
	if !m.Disposed() && !l.queue.Idle() { // a try never jumps the queue
		return false, fmt.Errorf("acquire %q: %w: other callers in this process run under it, or wait for it", l.Key(), lockfx.ErrNotIdle)
	}
	return m.Acquire(l.settings.labelled(ctx, ""))
}

// Release releases the lease. It returns true only if the store confirmed it, and leaves
// the lock Released whatever the store answered. It goes on when ctx has ended, within the
// release timeout. If nothing is held it returns (false, nil). Only the run releases the
// lease of a run: the error then matches [lockfx.ErrNotIdle]. A lease whose [MinHold] is not
// over is set to the rest of it instead.
func (l *Lock) Release(ctx context.Context) (bool, error) {
	return l.machine.Load().Release(ctx)
}

// Tick is one heartbeat, as the lock's timer makes it. It reports whether the lease is
// still held; the error says how it was lost or, with [WithRenewRetry], what failed. If ctx
// ends before the store has answered, the renewal has failed: without WithRenewRetry that
// loses the lease. If nothing is held, or after Dispose, it returns (false, nil) and does
// not ask the store.
func (l *Lock) Tick(ctx context.Context) (bool, error) {
	return l.machine.Load().Tick(ctx)
}

// Dispose ends the lock; the application's stop does it for a lock in a graph. It refuses
// new runs, cancels the running body with cause [lockfx.ErrDisposed], and renews until the
// body has returned and the run has released the lease. It may be called more than once. If
// ctx ends first, the error says so: the lease is not renewed any more, and the run releases
// it when its body returns, never before.
//
// A body should not call it, but use fx.Shutdowner: Dispose would wait for it until ctx ends.
func (l *Lock) Dispose(ctx context.Context) error {
	return l.machine.Load().Dispose(ctx)
}

// join is errors.Join that returns a lone error as it is.
func join(first, second error) error {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return errors.Join(first, second)
}

func (l *Lock) scopeError(op string, err error) error {
	return &lockfx.ScopeError{Key: l.settings.key, Op: op, Err: err}
}

// joinStop makes the lock one of its application's, which stop together.
func (l *Lock) joinStop(own *stop.Member, all stop.All) {
	own.Join(l.machine.Load)
	l.stopping, l.all = own, all
}

// stopBegins notifies all locks of the application that it stops, unless another hook has,
// and returns the context to wait with.
func (l *Lock) stopBegins(ctx context.Context) context.Context {
	if wait := l.stopping.Begun(); wait != nil {
		return wait
	}
	return l.all.Begin(ctx)
}

// warn writes a line about the lock, if there is a logger.
func (l *Lock) warn(line string, fields ...zap.Field) {
	if l.logger != nil {
		forLines(l.logger).Warn(line, append(fields, zap.String("lock", l.settings.name), keyField(l.Key()))...)
	}
}

// outlived returns the error of a hook that ran out of time: what still runs under the lock,
// unless another hook has said so. Otherwise it is what, as far as the hook knows.
func (l *Lock) outlived(ctx context.Context, what string) error {
	if err := l.Dispose(ctx); err != nil {
		return l.stopping.Once(err)
	}
	return fmt.Errorf("%s still runs: %w", what, context.Cause(ctx))
}

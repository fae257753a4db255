package fxlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// server stands for what calls a lock: a handler, a scheduler.
type server struct{}

func TestStop_EndsWhatUsesTheLockFirst(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var j journal
		store := newSpyStore(&j)
		app := fx.New(fx.NopLogger, fxlock.Module(key, fxlock.WithStore(store), fxlock.Observer(func(e lockfx.Event) {
			if e.Kind == lockfx.EventDisposed {
				j.add("lock stops")
			}
		})), fx.Provide(func(lc fx.Lifecycle, lock *fxlock.Lock) *server {
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error)
			lc.Append(fx.StartStopHook(func() {
				go func() {
					done <- lock.Run(ctx, func(ctx context.Context, h lockfx.Holder) error {
						<-ctx.Done()
						if !h.Held() || !errors.Is(context.Cause(ctx), context.Canceled) {
							t.Errorf("held %v, cause %v: the lock stopped before who uses it", h.Held(), context.Cause(ctx))
						}
						j.add("body ends")
						return nil
					})
				}()
			}, func() error {
				cancel()
				err := <-done
				j.add("server stops")
				return err
			}))
			return new(server)
		}), fx.Invoke(func(*server) {}))
		must(t, app.Start(t.Context()))
		time.Sleep(time.Minute) // two leases
		must(t, app.Stop(t.Context()))
		j.expect(t, "acquire", "body ends", "release", "server stops", "lock stops")
	})
}

// bodyUntilStop is a body that works until it is told to end.
func bodyUntilStop(t *testing.T, j *journal) func(context.Context, lockfx.Holder) error {
	return func(ctx context.Context, h lockfx.Holder) error {
		<-ctx.Done()
		wantIs(t, context.Cause(ctx), lockfx.ErrDisposed)
		time.Sleep(time.Minute) // two leases
		if !h.Held() {
			t.Error("the lease was not renewed while the body ended")
		}
		j.add("body ends")
		return nil
	}
}

// An application's own stop ends a run that nobody else does.
func TestStop_CancelsRenewsWaitsAndReleases(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var j journal
		var lock *fxlock.Lock
		app := fx.New(fx.NopLogger, fx.StopTimeout(time.Hour), fx.Populate(&lock), fxlock.Module(key, fxlock.WithStore(newSpyStore(&j))))
		must(t, app.Start(t.Context()))
		done := make(chan error, 1)
		go func() { done <- lock.Run(t.Context(), bodyUntilStop(t, &j)) }()
		synctest.Wait()
		must(t, app.Stop(t.Context()))
		j.add("stopped")
		noError(t, <-done)
		j.expect(t, "acquire", "body ends", "release", "stopped")
	})
}

// A run that was under way when an application stopped in vain does not disturb
// the next start: the store keeps the two apart.
func TestStop_RunThatOutlivesItExcludesTheNextStart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var j journal
		store := newSpyStore(&j)
		var nightly Nightly
		var tokens []lockfx.Token
		deaf := make(chan struct{})
		app := fx.New(fx.NopLogger, fx.Populate(&nightly), fxlock.Module(key, fxlock.WithStore(store),
			fxlock.Body[Nightly](func(token lockfx.Token) error {
				tokens = append(tokens, token)
				<-deaf
				return nil
			})))
		must(t, app.Start(t.Context()))
		done := make(chan error, 1)
		go func() { done <- nightly(t.Context()) }()
		synctest.Wait()
		stop, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := app.Stop(stop)
		wantIs(t, err, context.DeadlineExceeded)
		wantText(t, err, `stop fxlock_test.Nightly of lock "nightly": dispose "nightly": the body still runs under token`,
			`dispose "nightly": the body still runs under token`, "its lease is left to expire")

		must(t, app.Start(t.Context()))
		wantIs(t, nightly(t.Context()), lockfx.ErrNotAcquired)
		close(deaf)
		noError(t, <-done)
		must(t, nightly(t.Context()))
		must(t, app.Stop(t.Context()))
		if len(tokens) != 2 || tokens[1] <= tokens[0] {
			t.Errorf("tokens %v", tokens)
		}
	})
}

// What was acquired by hand before the start is still held after it, and given back by
// the stop: nothing of a lock is made anew unless it was disposed of.
func TestStop_ReleasesAHoldFromBeforeTheStart(t *testing.T) {
	var j journal
	store := newSpyStore(&j)
	var lock *fxlock.Lock
	app := fx.New(fx.NopLogger, fx.Populate(&lock), fxlock.Module(key, fxlock.WithStore(store)))
	if ok, err := lock.Acquire(t.Context()); !ok || err != nil {
		t.Fatalf("Acquire: %v, %v", ok, err)
	}
	must(t, app.Start(t.Context()))
	if !lock.Held() || !store.valid(lock.Token()) {
		t.Error("the start lost the hold")
	}
	must(t, app.Stop(t.Context()))
	j.expect(t, "acquire", "release")
}

// The lease of a body that outlives the stop is left to expire, whether fx skipped
// the hook of its lock or not.
func TestStop_EndsTheRenewalForABodyThatOutlivesIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		deaf := make(chan struct{})
		body := func() error { <-deaf; return nil }
		for name, run := range map[string]func(context.Context, *fxlock.Lock, Nightly) error{
			"Body": func(ctx context.Context, _ *fxlock.Lock, nightly Nightly) error { return nightly(ctx) },
			"Run":  func(ctx context.Context, lock *fxlock.Lock, _ Nightly) error { return lock.Run(ctx, body) },
		} {
			store := newSpyStore(new(journal))
			var lock *fxlock.Lock
			var nightly Nightly
			app := fx.New(fx.NopLogger, fx.Populate(&lock, &nightly), fxlock.Module(key, fxlock.WithStore(store), fxlock.Body[Nightly](body)))
			must(t, app.Start(t.Context()))
			done := make(chan error, 1)
			go func() { done <- run(t.Context(), lock, nightly) }()
			synctest.Wait()
			stop, cancel := context.WithTimeout(t.Context(), time.Second)
			wantIs(t, app.Stop(stop), context.DeadlineExceeded)
			cancel()
			time.Sleep(ttl)
			if !store.free() || lock.Held() {
				t.Errorf("%s: the lease is renewed under a body that is deaf", name)
			}
			deaf <- struct{}{}
			wantIs(t, <-done, lockfx.ErrLost)
		}
	})
}

// hookErrors is the last error of a hook that stopped, as the log of fx has it.
type hookErrors struct{ err error }

func (h *hookErrors) LogEvent(e fxevent.Event) {
	if stopped, ok := e.(*fxevent.OnStopExecuted); ok && stopped.Err != nil {
		h.err = stopped.Err
	}
}

// A lock that was made by hand and bound is disposed of with the application, even
// if nobody takes it, and is whole again after the next start.
func TestBind_DisposesOfItsLock(t *testing.T) {
	var j journal
	lock := newLock(t, newSpyStore(&j))
	app := fx.New(fx.NopLogger, fxlock.Bind("bound", lock))
	for range 2 {
		must(t, app.Start(t.Context()))
		if ok, err := lock.Acquire(t.Context()); !ok || err != nil {
			t.Fatal(ok, err)
		}
		must(t, app.Stop(t.Context()))
		_, err := lock.Acquire(t.Context())
		wantIs(t, err, lockfx.ErrDisposed)
		if lock.State() != lockfx.StateReleased {
			t.Errorf("state %v", lock.State())
		}
	}
	var p struct {
		fx.In
		Lock *fxlock.Lock `name:"bound"`
	}
	started(t, fxlock.Bind("bound", lock), fx.Populate(&p))
	if p.Lock != lock {
		t.Error("the graph has another lock")
	}
	j.expect(t, "acquire", "release", "acquire", "release")
}

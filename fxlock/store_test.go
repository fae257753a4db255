package fxlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// closingStore has something of its own to end.
type closingStore struct {
	*spyStore
	closing error
	t       *testing.T
}

func newClosingStore(t *testing.T, j *journal) *closingStore {
	return &closingStore{spyStore: newSpyStore(j), t: t}
}

func (s *closingStore) Close(context.Context) error {
	s.journal.add("close")
	if !s.free() {
		s.t.Error("the store was closed before the lease was released")
	}
	return s.closing
}

var _ lockfx.Closer = (*closingStore)(nil)

func TestStore_EveryWayToChooseIt(t *testing.T) {
	type in struct {
		fx.In
		Addr string `name:"addr"`
	}
	for name, way := range map[string]func(s *spyStore) (fxlock.Option, fx.Option){
		"WithStore": func(s *spyStore) (fxlock.Option, fx.Option) { return fxlock.WithStore(s), fx.Options() },
		"StoreFromGraph": func(s *spyStore) (fxlock.Option, fx.Option) {
			return fxlock.StoreFromGraph(), fx.Provide(func() lockfx.Store { return s })
		},
		"StoreFromGraph with a name": func(s *spyStore) (fxlock.Option, fx.Option) {
			return fxlock.StoreFromGraph("redis"), fx.Provide(fx.Annotated{Name: "redis", Target: func() lockfx.Store { return s }})
		},
		"StoreFrom": func(s *spyStore) (fxlock.Option, fx.Option) {
			return fxlock.StoreFrom(func(*DB) lockfx.Store { return s }), fx.Provide(newDB)
		},
		"StoreFrom with an error, of a type of its own": func(s *spyStore) (fxlock.Option, fx.Option) {
			return fxlock.StoreFrom(func(*DB) (*spyStore, error) { return s, nil }), fx.Provide(newDB)
		},
		"StoreFrom with a parameter object": func(s *spyStore) (fxlock.Option, fx.Option) {
			return fxlock.StoreFrom(func(p in) (*spyStore, error) { return s, wantAddr(p.Addr) }), fx.Supply(fx.Annotated{Name: "addr", Target: "a"})
		},
		"StoreFrom with fx.Annotate": func(s *spyStore) (fxlock.Option, fx.Option) {
			return fxlock.StoreFrom(fx.Annotate(func(addr string) (*spyStore, error) { return s, wantAddr(addr) }, fx.ParamTags(`name:"addr"`))),
				fx.Supply(fx.Annotated{Name: "addr", Target: "a"})
		},
		"StoreFrom with options of its own": func(s *spyStore) (fxlock.Option, fx.Option) {
			return fxlock.StoreFrom(func(_ *DB, opts ...string) *spyStore {
				if len(opts) != 0 {
					t.Errorf("the constructor got the options %q", opts)
				}
				return s
			}), fx.Provide(newDB)
		},
		"StoreFrom with hooks": func(s *spyStore) (fxlock.Option, fx.Option) {
			started := false
			return fxlock.StoreFrom(fx.Annotate(func() *spyStore { return s },
				fx.OnStart(func(*spyStore) { started = true }),
				fx.OnStop(func(*spyStore) error {
					if !started || !s.free() {
						return errors.New("the store stops before the lock has released")
					}
					return nil
				}))), fx.Options()
		},
	} {
		t.Run(name, func(t *testing.T) {
			var j journal
			s := newSpyStore(&j)
			opt, more := way(s)
			var lock *fxlock.Lock
			started(t, more, fxlock.Module(key, opt), fx.Populate(&lock))
			must(t, lock.Run(t.Context(), func() { j.add("body") }))
			j.expect(t, "acquire", "body", "release")
		})
	}
}

func wantAddr(addr string) error {
	if addr != "a" {
		return errors.New("got the address " + addr)
	}
	return nil
}

// A store that can't be had is an error of fx.New: the lock never falls back to one
// that excludes nobody.
func TestStore_MissingStoreFailsTheApplication(t *testing.T) {
	var lock *fxlock.Lock
	for name, tt := range map[string]struct {
		opt  fxlock.Option
		more fx.Option
		says []string
	}{
		"not in the graph":      {fxlock.StoreFromGraph(), fx.Options(), []string{"missing type: lockfx.Store"}},
		"not under that name":   {fxlock.StoreFromGraph("redis"), fx.Provide(newStore), []string{`missing type: lockfx.Store[name="redis"]`}},
		"nil in the graph":      {fxlock.StoreFromGraph(), fx.Provide(func() lockfx.Store { return nil }), []string{`fxlock.Module("nightly")`, "fxlock.StoreFromGraph(): the store must not be nil"}},
		"typed nil":             {fxlock.StoreFromGraph(), fx.Provide(func() lockfx.Store { return (*spyStore)(nil) }), []string{"the store must not be nil"}},
		"nil by a constructor":  {fxlock.StoreFrom(func() (*spyStore, error) { return nil, nil }), fx.Options(), []string{"returned a nil store"}},
		"constructor fails":     {fxlock.StoreFrom(func() (*spyStore, error) { return nil, errBody }), fx.Options(), []string{errBody.Error(), "store_test.go:"}},
		"constructor's missing": {fxlock.StoreFrom(func(*DB) lockfx.Store { return nil }), fx.Options(), []string{"missing type: *fxlock_test.DB", "store_test.go:"}},
		"its own client fails":  {fxlock.StoreFromGraph(), fx.Provide(func(*DB) lockfx.Store { return nil }), []string{"missing type: *fxlock_test.DB"}},
	} {
		t.Run(name, func(t *testing.T) {
			wantText(t, newErr(fxlock.Module(key, tt.opt), tt.more, fx.Populate(&lock)), append(tt.says, "failed to build *fxlock.Lock")...)
		})
	}
}

// A store that belongs to the lock is closed with it, behind the release, and used
// again after a new start. One that was given is not closed.
func TestStoreFrom_ClosesAfterTheRelease(t *testing.T) {
	for name, tt := range map[string]struct {
		way   func(s *closingStore) fx.Option
		close bool
	}{
		"StoreFrom": {func(s *closingStore) fx.Option {
			return fxlock.Module(key, fxlock.StoreFrom(func() lockfx.Store { return s }))
		}, true},
		"WithStore": {func(s *closingStore) fx.Option { return fxlock.Module(key, fxlock.WithStore(s)) }, false},
		"StoreFromGraph": {func(s *closingStore) fx.Option {
			return fx.Options(fx.Provide(func() lockfx.Store { return s }), fxlock.Module(key, fxlock.StoreFromGraph()))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var j journal
			var lock *fxlock.Lock
			app := fx.New(fx.NopLogger, tt.way(newClosingStore(t, &j)), fx.Populate(&lock))
			var want []string
			for range 2 {
				must(t, app.Start(t.Context()))
				if ok, err := lock.Acquire(t.Context()); !ok || err != nil { // left to the stop
					t.Fatal(ok, err)
				}
				must(t, app.Stop(t.Context()))
				want = append(want, "acquire", "release")
				if tt.close {
					want = append(want, "close")
				}
			}
			j.expect(t, want...)
		})
	}
}

func TestStoreFrom_ClosesThoughTheReleaseFailed(t *testing.T) {
	var j journal
	s := newClosingStore(t, &j)
	s.closing = errStop
	s.release = func() (bool, error) {
		_, _ = s.Break(context.Background(), key)
		return false, errRelease
	}
	var lock *fxlock.Lock
	app := fx.New(fx.NopLogger, fx.Populate(&lock), fxlock.Module(key, fxlock.StoreFrom(func() lockfx.Store { return s })))
	must(t, app.Start(t.Context()))
	if ok, err := lock.Acquire(t.Context()); !ok || err != nil {
		t.Fatal(ok, err)
	}
	err := app.Stop(t.Context())
	wantIs(t, err, errRelease, errStop)
	wantText(t, err, `close the store of "nightly": stop-fault`)
	j.expect(t, "acquire", "release", "close")
}

// A body that outlives the stop still needs the store.
func TestStoreFrom_StaysOpenUnderARunningBody(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var j journal
		var lock *fxlock.Lock
		app := fx.New(fx.NopLogger, fx.Populate(&lock),
			fxlock.Module(key, fxlock.StoreFrom(func() lockfx.Store { return newClosingStore(t, &j) })))
		must(t, app.Start(t.Context()))
		deaf, done := make(chan struct{}), make(chan error)
		go func() { done <- lock.Run(t.Context(), func() { <-deaf; j.add("body ends") }) }()
		time.Sleep(time.Second)

		stop, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := app.Stop(stop)
		wantIs(t, err, context.DeadlineExceeded)
		synctest.Wait() // the hook has given up
		close(deaf)
		noError(t, <-done)
		j.expect(t, "acquire", "body ends", "release")

		must(t, app.Start(t.Context())) // the next stop closes it
		must(t, app.Stop(t.Context()))
		j.expect(t, "acquire", "body ends", "release", "close")
	})
}

package layeredfx_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
	"github.com/lockfx/lockfx/layered"
	"github.com/lockfx/lockfx/layered/layeredfx"
)

const (
	hostKey = "nightly"
	ttl     = time.Minute
)

// askedStore counts what it is asked for.
type askedStore struct {
	*fxlock.MemoryStore
	mu              sync.Mutex
	asked, refusals int
}

func newAskedStore() *askedStore { return &askedStore{MemoryStore: fxlock.NewMemoryStore()} }

func (s *askedStore) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	grant, err := s.MemoryStore.Acquire(ctx, key, ttl)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if !grant.OK {
		s.refusals++
	}
	return grant, err
}

func (s *askedStore) counts() (asked, refusals int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked, s.refusals
}

// replica is the lock of one application of this host.
func replica(t *testing.T, store lockfx.Store, opts ...fxlock.Option) *fxlock.Lock {
	t.Helper()
	lock, err := fxlock.New(append(opts, fxlock.WithKey(hostKey), fxlock.WithTTL(ttl), fxlock.WithStore(store))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lock.Dispose(context.Background()); err != nil {
			t.Errorf("dispose: %v", err)
		}
	})
	return lock
}

// hold runs a body under lock until the returned function is called.
func hold(t *testing.T, lock *fxlock.Lock) (release func()) {
	t.Helper()
	held, done, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		ended <- lock.Do(context.Background(), func(context.Context, lockfx.Holder) error {
			close(held)
			<-done
			return nil
		})
	}()
	<-held
	return sync.OnceFunc(func() {
		close(done)
		if err := <-ended; err != nil && !errors.Is(err, lockfx.ErrLost) {
			t.Errorf("the holder: %v", err)
		}
	})
}

func doNothing(context.Context, lockfx.Holder) error { return nil }

// requests lets five replicas, in each of which four callers wait, run a short job
// each, and returns how often the store was asked, and refused.
func requests(t *testing.T, opts ...fxlock.Option) (asked, refusals int) {
	synctest.Test(t, func(t *testing.T) {
		store := newAskedStore()
		var callers sync.WaitGroup
		for range 5 {
			lock := replica(t, store, append(opts, fxlock.WaitForever())...)
			for range 4 {
				callers.Go(func() {
					if err := lock.Do(t.Context(), func(context.Context, lockfx.Holder) error {
						time.Sleep(time.Second)
						return nil
					}); err != nil {
						t.Error(err)
					}
				})
			}
		}
		callers.Wait()
		asked, refusals = store.counts()
	})
	return asked, refusals
}

func TestOneContenderOfAHostReachesTheStore(t *testing.T) {
	if asked, refusals := requests(t, layeredfx.ThroughHost(inProcess)); asked != 20 || refusals != 0 {
		t.Errorf("for 20 runs the store was asked %d times, and refused %d times", asked, refusals)
	}
	if _, refusals := requests(t); refusals == 0 {
		t.Error("without the layers, nobody was refused: this test shows nothing")
	}
}

// Whoever is refused by the store learns who holds it. The run's events say who held the
// layers.
func TestContentionOnTheHostNamesTheLayer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		through := layeredfx.ThroughHost(inProcess)
		store := newAskedStore()
		release := hold(t, replica(t, store, layeredfx.ThroughHost(inProcess)))
		defer release()
		for name, opts := range map[string][]fxlock.RunOption{"one try": nil, "a wait": {fxlock.Wait(time.Second)}} {
			var gate string
			err := replica(t, store, through, fxlock.Observer(func(e lockfx.Event) { gate = e.Gate })).Do(t.Context(), doNothing, opts...)
			var refusal *lockfx.NotAcquiredError
			if !errors.As(err, &refusal) || refusal.Key != hostKey || refusal.Self || refusal.HeldBy == "" {
				t.Errorf("%s: %v", name, err)
			}
			if want := "not passed: acquire \"nightly\": held by another on this host (worker layer)"; gate != want {
				t.Errorf("%s: the event says %q, want %q", name, gate, want)
			}
			if timedOut := errors.Is(err, lockfx.ErrTimeout); timedOut != (opts != nil) {
				t.Errorf("%s: it timed out: %v, in %v", name, timedOut, err)
			}
		}
		skipped := func(ctx context.Context) error {
			return replica(t, store, through).Do(ctx, doNothing, fxlock.SkipOn(lockfx.ErrNotAcquired))
		}
		if err := skipped(t.Context()); err != nil {
			t.Errorf("contention on the host is a fault for a scheduler: %v", err)
		}
	})
}

// deafHolder makes a replica hold the lock, whose lease ends although it still runs: its
// process was stopped, or its body does not heed the loss.
func deafHolder(t *testing.T, store *askedStore) (release func()) {
	t.Helper()
	cut := &cutStore{askedStore: store}
	release = hold(t, replica(t, cut, layeredfx.ThroughHost(inProcess)))
	cut.cut.Store(true)
	return release
}

// cutStore is a store that one replica can't reach any more.
type cutStore struct {
	*askedStore
	cut atomic.Bool
}

func (s *cutStore) Renew(ctx context.Context, key string, token lockfx.Token, ttl time.Duration) (bool, error) {
	if s.cut.Load() {
		return false, errors.New("no route to the store")
	}
	return s.askedStore.Renew(ctx, key, token, ttl)
}

// The holder of the host's layers may have lost its lease; then another host would take
// over as well.
func TestThroughHost_TheStoreDecidesWhenTheHolderIsDeaf(t *testing.T) {
	for name, tt := range map[string]struct {
		opts   []fxlock.RunOption
		after  time.Duration // the end of the lease
		within time.Duration
	}{
		"one that waited before":  {[]fxlock.RunOption{fxlock.WaitForever()}, -time.Hour, ttl},
		"one that waits later":    {[]fxlock.RunOption{fxlock.WaitForever()}, time.Second, ttl},
		"one with a short limit":  {[]fxlock.RunOption{fxlock.Wait(time.Second)}, time.Second, time.Second},
		"one that makes one try":  {nil, time.Second, 0},
		"one with a limit of ttl": {[]fxlock.RunOption{fxlock.Wait(ttl)}, time.Second, ttl},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newAskedStore()
				began := time.Now()
				release := deafHolder(t, store)
				if tt.after > 0 {
					time.Sleep(ttl + tt.after)
					began = time.Now()
				}
				if err := replica(t, store, layeredfx.ThroughHost(inProcess)).Do(t.Context(), doNothing, tt.opts...); err != nil {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
				if waited := time.Since(began); waited > tt.within+time.Second {
					t.Errorf("it had to wait for %v, want %v", waited, tt.within)
				}
				release()
			})
		})
	}
}

func TestThroughHost_AnotherReplicaOfTheHostLeadsWhenTheLeaderIsDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newAskedStore()
		release := deafHolder(t, store)
		led := make(chan time.Time, 10)
		began := time.Now()
		for range 3 {
			app := fxtest.New(t, fxlock.Module(hostKey, fxlock.WithTTL(ttl), fxlock.WithStore(store), layeredfx.ThroughHost(inProcess),
				fxlock.Lead(func(ctx context.Context) error {
					led <- time.Now()
					<-ctx.Done()
					return nil
				}))).RequireStart()
			defer app.RequireStop()
		}
		if waited := (<-led).Sub(began); waited > 2*ttl {
			t.Errorf("nobody led for %v", waited)
		}
		time.Sleep(time.Hour)
		if len(led) > 0 {
			t.Error("two lead")
		}
		release()
	})
}

// The holder renews its lease: whoever waits on its host asks the store about once a ttl.
func TestThroughHost_ALongHoldIsAskedAboutOnceATTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newAskedStore()
		release := hold(t, replica(t, store, layeredfx.ThroughHost(inProcess)))
		waiters := sync.WaitGroup{}
		const replicas, hours = 5, 1
		for range replicas {
			lock := replica(t, store, layeredfx.ThroughHost(inProcess))
			waiters.Go(func() {
				if err := lock.Do(t.Context(), doNothing, fxlock.WaitForever()); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(hours * time.Hour)
		if _, refusals := store.counts(); refusals > 2*replicas*int(hours*time.Hour/ttl) {
			t.Errorf("the store refused %d times in %d h", refusals, hours)
		}
		release()
		waiters.Wait()
	})
}

// A file system that does not answer is no reason not to ask the store.
func TestThroughHost_DoesNotOutwaitItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		through := layeredfx.ThroughHost(inProcess)
		release := hold(t, replica(t, newAskedStore(), through))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		if err := replica(t, newAskedStore(), through, fxlock.WaitForever()).Do(ctx, doNothing); !errors.Is(err, context.Canceled) || time.Since(began) != 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		release()
	})
}

// The wait limit is for the waiting: it does not end what was acquired.
func TestTheLayersAreHeldBeyondTheWaitLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newAskedStore()
		var gate string
		lock := replica(t, store, layeredfx.ThroughHost(inProcess))
		other := replica(t, store, layeredfx.ThroughHost(inProcess), fxlock.Observer(func(e lockfx.Event) { gate = e.Gate }))
		err := lock.Do(t.Context(), func(ctx context.Context, _ lockfx.Holder) error {
			time.Sleep(time.Hour)
			if err := other.Do(ctx, doNothing); !errors.Is(err, lockfx.ErrNotAcquired) || !strings.Contains(gate, "on this host") {
				t.Errorf("another run: %v, %q", err, gate)
			}
			return ctx.Err()
		}, fxlock.Wait(time.Second))
		if err != nil {
			t.Error(err)
		}
	})
}

func TestWaitingForTheHostEndsAtOnce(t *testing.T) {
	for name, end := range map[string]func(*fxlock.Lock, context.CancelFunc) error{
		"cancelled": func(_ *fxlock.Lock, cancel context.CancelFunc) error { cancel(); return context.Canceled },
		"stopped": func(lock *fxlock.Lock, _ context.CancelFunc) error {
			if err := lock.Dispose(context.Background()); err != nil {
				return err
			}
			return lockfx.ErrDisposed
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newAskedStore()
				release := hold(t, replica(t, store, layeredfx.ThroughHost(inProcess)))
				lock := replica(t, store, layeredfx.ThroughHost(inProcess, layered.WithTimeoutResult(time.Minute)), fxlock.WaitForever())
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan error, 1)
				go func() { ended <- lock.Do(ctx, doNothing) }()
				time.Sleep(time.Hour) // a timeout among the options is overruled
				select {
				case err := <-ended:
					t.Fatalf("it does not wait: %v", err)
				default:
				}
				want, began := end(lock, cancel), time.Now()
				if err := <-ended; !errors.Is(err, want) || time.Since(began) != 0 {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
				release()
				if err := replica(t, store, layeredfx.ThroughHost(inProcess)).Do(t.Context(), doNothing); err != nil {
					t.Errorf("who gave up is still in the way: %v", err)
				}
			})
		})
	}
}

func TestTheHostIsLeftHoweverTheRunEnds(t *testing.T) {
	lock := replica(t, newAskedStore(), layeredfx.ThroughHost(inProcess))
	func() {
		defer func() { _ = recover() }()
		_ = lock.Do(t.Context(), func(context.Context, lockfx.Holder) error { panic("in the body") })
	}()
	refused := errors.New("refused")
	if err := lock.Do(t.Context(), func(context.Context, lockfx.Holder) error { return refused }); !errors.Is(err, refused) {
		t.Error(err)
	}
	if err := lock.Do(t.Context(), doNothing); err != nil {
		t.Error(err)
	}
}

func TestTheLayersAreInEventsAndLogLines(t *testing.T) {
	core, lines := observer.New(zap.InfoLevel)
	var events []lockfx.Event
	lock := replica(t, newAskedStore(), layeredfx.ThroughHost(layered.WithDir(t.TempDir())), fxlock.WithLogger(zap.New(core)),
		fxlock.Observer(func(e lockfx.Event) { events = append(events, e) }))
	if err := lock.Do(t.Context(), doNothing); err != nil {
		t.Fatal(err)
	}
	const want = "this host: memory on, worker on, flock on, poll skipped (flock is held); waited "
	for _, e := range events {
		if !strings.HasPrefix(e.Gate, want) {
			t.Errorf("%v notes %q", e.Kind, e.Gate)
		}
	}
	for _, line := range lines.All() {
		if note, _ := line.ContextMap()["gate"].(string); !strings.HasPrefix(note, want) {
			t.Errorf("%q notes %q", line.Message, note)
		}
	}
	if len(events) != 2 || lines.Len() != 2 {
		t.Errorf("%d events and %d lines, want the acquisition and the release", len(events), lines.Len())
	}
}

func TestALayerThatCannotBeHadEndsTheRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	store := newAskedStore()
	lock := replica(t, store, fxlock.WaitForever(), layeredfx.ThroughHost(
		layered.WithDir(filepath.Join(file, "locks")), layered.WithScope(layered.Scope{Flock: layered.On})))
	err := lock.Do(t.Context(), func(context.Context, lockfx.Holder) error { t.Error("the body ran"); return nil })
	var layer *layered.LayerError
	if !errors.As(err, &layer) || layer.Layer != layered.LayerFlock || errors.Is(err, lockfx.ErrNotAcquired) {
		t.Errorf("err = %v", err)
	}
	if asked, _ := store.counts(); asked != 0 {
		t.Errorf("the store was asked %d times", asked)
	}
}

// A lease that was held all the time is not reported as lost because of a layer, but
// a layer that is not given back is.
func TestLosingTheHostIsNoLoss(t *testing.T) {
	dir := t.TempDir()
	poll := layered.WithScope(layered.Scope{Flock: layered.Off, Poll: layered.On})
	lock := replica(t, newAskedStore(), layeredfx.ThroughHost(poll, layered.WithDir(dir)))
	removed := 0
	if err := lock.Do(t.Context(), func(context.Context, lockfx.Holder) error {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		for _, file := range files {
			removed++
			err = errors.Join(err, os.Remove(file))
		}
		return err
	}); err != nil || removed != 1 {
		t.Errorf("%v, and %d files were removed", err, removed)
	}
	if err := lock.Do(t.Context(), doNothing); err != nil {
		t.Errorf("the next run: %v", err)
	}
}

func TestFaultsOfThroughHostAreErrorsOfTheApplication(t *testing.T) {
	through := layeredfx.ThroughHost(layered.WithStale(time.Millisecond), nil, layered.WithTimeout(-1))
	const text = "fxlock.WithGate(layeredfx.ThroughHost(layered.WithStale(1ms), nil, layered.WithTimeout(-1ns)))"
	if through.String() != text {
		t.Errorf("it prints as %s", through)
	}
	err := fx.New(fx.NopLogger, fxlock.Module(hostKey, through, fxlock.WithStore(newAskedStore()))).Err()
	for _, part := range []string{text, "must be at least 2s", "option 3 is nil", "must not be negative"} {
		if !errors.Is(err, lockfx.ErrConfig) || !strings.Contains(err.Error(), part) {
			t.Errorf("err = %v, want %s in it", err, part)
		}
	}
}

func TestOneOptionServesManyApplications(t *testing.T) {
	through := layeredfx.ThroughHost(inProcess)
	for range 2 {
		var lock *fxlock.Lock
		app := fxtest.New(t, fxlock.Module(hostKey, through, fxlock.WithStore(newAskedStore())), fx.Populate(&lock)).RequireStart()
		if err := lock.Do(t.Context(), doNothing); err != nil {
			t.Error(err)
		}
		app.RequireStop()
	}
}

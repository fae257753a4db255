package layered

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
)

func newLocker(t *testing.T, opts ...LockerOption) *Locker {
	t.Helper()
	l, err := New(opts...)
	must(t, err)
	return l
}

func TestMemoryIsPerLockerAndWorkerIsNot(t *testing.T) {
	one, two := newLocker(t), newLocker(t)
	for layer, excluded := range map[Layer]bool{LayerMemory: false, LayerWorker: true} {
		only := onlyIn(layer)
		_, err := WithLock(t.Context(), 0, func(context.Context, Call[int]) (int, error) {
			for _, l := range []*Locker{one, two} {
				res, err := WithLock(t.Context(), 0, nothing[int], WithKey("k"), only, WithLocker(l), WithTimeoutResult(0))
				if want := excluded || l == one; err != nil || (res.State == StateTimeout) != want {
					t.Errorf("%v: state %v, %v", layer, res.State, err)
				}
			}
			return 0, nil
		}, WithKey("k"), only, WithLocker(one))
		must(t, err)
	}
}

func TestCallsWinOverTheirLocker(t *testing.T) {
	l := newLocker(t, WithNamespace("n"), WithScope(Scope{Flock: Off, Poll: Off}), WithTimeout(time.Hour))
	res, err := WithLock(t.Context(), 0, nothing[int], WithLocker(l), WithKey("k"), WithScope(Scope{Worker: Off}))
	must(t, err)
	if i := res.Lock; i.Namespace != "n" || i.Memory.Outcome != OutcomeOn || i.Worker.Outcome != OutcomeOff || i.Flock.Outcome != OutcomeOff {
		t.Errorf("info %+v", i)
	}
	res, err = WithLock(t.Context(), 0, nothing[int], WithNamespace("m"), WithLocker(l), WithKey("k"))
	must(t, err)
	if i := res.Lock; i.Namespace != "m" || i.Worker.Outcome != OutcomeOn {
		t.Errorf("info %+v", i)
	}
}

func TestZeroLockerHasTheDefaultsOfThePackage(t *testing.T) {
	t.Setenv("LOCKFX_LOCK_DIR", t.TempDir())
	t.Cleanup(files.CloseIdle)
	key := WithKey(t.Name())
	want, err := WithLock(t.Context(), 0, nothing[int], key, WithLocker(newLocker(t)))
	must(t, err)
	got, err := WithLock(t.Context(), 0, nothing[int], key, WithLocker(new(Locker)))
	must(t, err)
	got.Lock.Waited = want.Lock.Waited
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	// A stale time of zero would make every lock of the poll layer stale, ours too.
	_, err = WithLock(t.Context(), 0, nothing[int], key, WithLocker(new(Locker)), onlyIn(LayerPoll))
	must(t, err)
}

func TestCloseEndsWaitersAndWaitsForActions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, WithScope(Scope{Flock: Off, Poll: Off}))
		finish := make(chan struct{})
		acted, waited, closed := make(chan error, 1), make(chan error, 1), make(chan error, 2)
		go func() {
			_, err := WithLock(t.Context(), 0, func(context.Context, Call[int]) (int, error) {
				<-finish
				return 0, nil
			}, WithLocker(l), WithKey("k"))
			acted <- err
		}()
		synctest.Wait()
		go func() {
			_, err := WithLock(t.Context(), 0, nothing[int], WithLocker(l), WithKey("k"))
			waited <- err
		}()
		synctest.Wait()
		for range 2 {
			go func() { closed <- l.Close(t.Context()) }()
		}
		if err := <-waited; !errors.Is(err, lockfx.ErrDisposed) {
			t.Errorf("the waiter got %v", err)
		}
		synctest.Wait()
		if len(closed) != 0 {
			t.Error("Close did not wait for the action")
		}
		_, err := WithLock(t.Context(), 0, nothing[int], WithLocker(l), WithKey("other"),
			WithPredicate(func(context.Context, Call[int]) (bool, error) { t.Error("a callback ran"); return true, nil }))
		if !errors.Is(err, lockfx.ErrDisposed) {
			t.Errorf("a new call got %v", err)
		}
		close(finish)
		for _, err := range []error{<-acted, <-closed, <-closed, l.Close(t.Context())} {
			if err != nil {
				t.Error(err)
			}
		}
		l.Open()
		if _, err := WithLock(t.Context(), 0, nothing[int], WithLocker(l), WithKey("k")); err != nil {
			t.Errorf("after Open: %v", err)
		}
	})
}

func TestCloseOutOfTimeCancelsActions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, WithScope(Scope{Flock: Off, Poll: Off}))
		acted := make(chan error)
		for _, key := range []string{"a", "b"} {
			go func() {
				_, err := WithLock(t.Context(), 0, func(ctx context.Context, _ Call[int]) (int, error) {
					<-ctx.Done()
					return 0, context.Cause(ctx)
				}, WithLocker(l), WithKey(key))
				acted <- err
			}()
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := l.Close(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "2 calls still run") {
			t.Errorf("Close = %v", err)
		}
		for range 2 {
			if err := <-acted; !errors.Is(err, lockfx.ErrDisposed) {
				t.Errorf("the action's context ended with %v", err)
			}
		}
		must(t, l.Close(t.Context()))
		if l.memory.Len() != 0 {
			t.Error("a lock is still held")
		}
	})
}

func TestLockersKeepNothing(t *testing.T) {
	l := newLocker(t, WithScope(Scope{Flock: Off, Poll: Off}))
	for i := range 1000 {
		_, err := WithLock(t.Context(), i, nothing[int], WithLocker(l))
		must(t, err)
	}
	if l.memory.Len() != 0 || workers.Len() != 0 || len(l.visits) != 0 {
		t.Errorf("kept: %d keys, %d keys, %d calls", l.memory.Len(), workers.Len(), len(l.visits))
	}
}

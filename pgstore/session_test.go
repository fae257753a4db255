package pgstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
)

// fakeEar hears what the test says.
type fakeEar struct {
	keys   chan string
	broken chan struct{} // closed when the connection breaks
	dead   atomic.Bool   // it breaks without a sign
	closed atomic.Bool
}

var errBroken = errors.New("connection reset")

func (f *fakeEar) next(ctx context.Context) (string, error) {
	quiet := time.NewTimer(silence)
	defer quiet.Stop()
	select {
	case key := <-f.keys:
		return key, nil
	case <-f.broken:
		return "", errBroken
	case <-quiet.C:
		return "", errSilence
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (f *fakeEar) test(context.Context) error {
	if f.dead.Load() {
		return errBroken
	}
	return nil
}

func (f *fakeEar) close() { f.closed.Store(true) }

// line is where connections come from: one after another, or an error.
type line struct {
	store *Store

	mu    sync.Mutex // guards what follows
	ears  []*fakeEar
	err   error
	tries int
}

func (l *line) open(context.Context) (ear, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tries++
	if l.err != nil {
		return nil, l.err
	}
	e := &fakeEar{keys: make(chan string), broken: make(chan struct{})}
	l.ears = append(l.ears, e)
	return e, nil
}

// fail makes every further connection an error; nil makes it succeed.
func (l *line) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

func (l *line) last() *fakeEar {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ears[len(l.ears)-1]
}

func (l *line) connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ears)
}

// onLine runs a test in a bubble of virtual time.
func onLine(t *testing.T, test func(t *testing.T, l *line)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &line{store: &Store{}}
		l.store.hub.tasks = &l.store.tasks
		l.store.hub.open = l.open
		test(t, l)
		if err := l.store.Close(t.Context()); err != nil {
			t.Error(err)
		}
		for _, e := range l.ears {
			if !e.closed.Load() {
				t.Error("a connection was left open")
			}
		}
	})
}

func (l *line) watch(t *testing.T, key string) (<-chan struct{}, func()) {
	t.Helper()
	freed, stop, err := l.store.Watch(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return freed, stop
}

// state is what a channel shows without waiting.
func state(freed <-chan struct{}) string {
	synctest.Wait()
	select {
	case _, open := <-freed:
		if !open {
			return "closed"
		}
		return "signal"
	default:
		return "nothing"
	}
}

func shows(t *testing.T, freed <-chan struct{}, want string) {
	t.Helper()
	if got := state(freed); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestOnlyTheKeyThatWasFreedWakes(t *testing.T) {
	onLine(t, func(t *testing.T, l *line) {
		a, _ := l.watch(t, "a")
		alsoA, _ := l.watch(t, "a")
		b, _ := l.watch(t, "b")
		shows(t, a, "nothing")
		l.last().keys <- "a"
		l.last().keys <- "a"
		shows(t, a, "signal")
		shows(t, a, "nothing")
		shows(t, alsoA, "signal")
		shows(t, b, "nothing")
		if l.connections() != 1 {
			t.Errorf("%d connections, want 1", l.connections())
		}
	})
}

func TestTheLastStopEndsTheConnection(t *testing.T) {
	onLine(t, func(t *testing.T, l *line) {
		a, stopA := l.watch(t, "a")
		_, stopB := l.watch(t, "b")
		stopA()
		stopA()
		synctest.Wait()
		if l.last().closed.Load() {
			t.Error("closed under a watch")
		}
		stopB()
		synctest.Wait()
		if !l.last().closed.Load() {
			t.Error("open without a watch")
		}
		shows(t, a, "nothing")
		l.watch(t, "a")
		if l.connections() != 2 {
			t.Errorf("%d connections, want a second one", l.connections())
		}
	})
}

func TestABrokenConnectionIsReplacedAndWakesEverybody(t *testing.T) {
	onLine(t, func(t *testing.T, l *line) {
		a, _ := l.watch(t, "a")
		b, _ := l.watch(t, "b")
		l.fail(errBroken)
		close(l.last().broken)
		time.Sleep(reopenWithin / 2)
		shows(t, a, "nothing")
		l.fail(nil)
		time.Sleep(2 * reopenAgain)
		shows(t, a, "signal")
		shows(t, b, "signal")
		l.last().keys <- "a"
		shows(t, a, "signal")
	})
}

// Connections that break as soon as they listen are not made one after the other
// without a pause.
func TestConnectionsThatDoNotLastAreNoFlood(t *testing.T) {
	onLine(t, func(t *testing.T, l *line) {
		a, _ := l.watch(t, "a")
		const cuts = 10
		begin := time.Now()
		for range cuts {
			before := l.connections()
			close(l.last().broken)
			for l.connections() == before {
				time.Sleep(time.Millisecond)
				synctest.Wait()
			}
		}
		if took := time.Since(begin); took < cuts*reopenAgain {
			t.Errorf("%d connections within %v", cuts, took)
		}
		shows(t, a, "signal")
		time.Sleep(time.Second)
		before := l.connections()
		close(l.last().broken)
		synctest.Wait()
		if l.connections() == before {
			t.Error("a connection that has lasted was not replaced at once")
		}
	})
}

// A connection that breaks without a sign is found out by a test.
func TestASilentBreakIsFoundOut(t *testing.T) {
	onLine(t, func(t *testing.T, l *line) {
		a, _ := l.watch(t, "a")
		time.Sleep(10 * silence)
		shows(t, a, "nothing")
		l.last().dead.Store(true)
		time.Sleep(2 * silence)
		shows(t, a, "signal")
		if l.connections() != 2 {
			t.Errorf("%d connections, want 2", l.connections())
		}
	})
}

func TestAConnectionThatCannotBeReplacedLosesTheWatches(t *testing.T) {
	onLine(t, func(t *testing.T, l *line) {
		a, stop := l.watch(t, "a")
		l.fail(errBroken)
		close(l.last().broken)
		time.Sleep(reopenWithin + time.Second)
		shows(t, a, "closed")
		stop()
		if _, _, err := l.store.Watch(t.Context(), "a"); !errors.Is(err, errBroken) || !errors.Is(err, lockfx.ErrStore) {
			t.Errorf("%v; want the reason", err)
		}
		l.fail(nil)
		l.watch(t, "a")
	})
}

// Where nothing can be heard, nobody tries again and again.
func TestADeafPoolIsAskedOnce(t *testing.T) {
	onLine(t, func(t *testing.T, l *line) {
		l.fail(deafError{"a reason"})
		for range 10 {
			if _, _, err := l.store.Watch(t.Context(), "a"); !errors.As(err, new(deafError)) {
				t.Errorf("%v; want that it is deaf", err)
			}
		}
		if l.tries != 1 {
			t.Errorf("%d tries, want 1", l.tries)
		}
		if err := l.store.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.fail(nil)
		a, _ := l.watch(t, "a")
		l.fail(deafError{"a pooler took over"})
		close(l.last().broken)
		time.Sleep(reopenAgain)
		shows(t, a, "closed")
	})
}

func TestWatchEndsWithItsContext(t *testing.T) {
	onLine(t, func(t *testing.T, l *line) {
		l.store.hub.open = func(ctx context.Context) (ear, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("impatient"))
		defer cancel()
		begin := time.Now()
		_, _, err := l.store.Watch(ctx, "a")
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Second {
			t.Errorf("%v after %v; want the end of the context", err, time.Since(begin))
		}
	})
}

func TestCloseEndsWatchesThatAreNotReady(t *testing.T) {
	onLine(t, func(t *testing.T, l *line) {
		l.store.hub.open = func(ctx context.Context) (ear, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		watched := make(chan error)
		go func() {
			_, _, err := l.store.Watch(context.Background(), "a")
			watched <- err
		}()
		synctest.Wait()
		l.store.hub.close()
		if err := <-watched; !errors.Is(err, errClosed) {
			t.Errorf("%v, want %v", err, errClosed)
		}
	})
}

// Close waits for what is under way, as long as its context allows.
func TestCloseIsBounded(t *testing.T) {
	onLine(t, func(t *testing.T, l *line) {
		l.store.tasks.run(func() { time.Sleep(time.Minute) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.store.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v; want the end of the context", err)
		}
		begin := time.Now()
		if err := l.store.Close(t.Context()); err != nil || time.Since(begin) != 59*time.Second {
			t.Errorf("%v after %v; want to wait for the rest", err, time.Since(begin))
		}
	})
}

package pgstore

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
)

func TestWatch_SignalsTheKeyThatWasFreedAlone(t *testing.T) {
	onLine(t, func(t *testing.T, l *line) {
		a, _ := l.watch(t, "a")
		b, _ := l.watch(t, "b")
		shows(t, a, "nothing")
		l.last().keys <- "a"
		l.last().keys <- "a"
		shows(t, a, "signal")
		shows(t, b, "nothing")
		if l.connections() != 1 {
			t.Errorf("%d connections, want 1", l.connections())
		}
	})
}

func TestWatch_ReplacesABrokenConnectionAndSignalsAll(t *testing.T) {
	onLine(t, func(t *testing.T, l *line) {
		a, _ := l.watch(t, "a")
		b, _ := l.watch(t, "b")
		l.fail(errBroken)
		close(l.last().broken)
		time.Sleep(openWithin / 2)
		shows(t, a, "nothing")
		l.fail(nil)
		time.Sleep(2 * openAgain)
		shows(t, a, "signal")
		shows(t, b, "signal")
		l.last().keys <- "a"
		shows(t, a, "signal")
	})
}

// Connections that break as soon as they listen are not made one after the other
// without a pause.
func TestWatch_ConnectsWithoutHasteWhereConnectionsDoNotLast(t *testing.T) {
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
		if took := time.Since(begin); took < cuts*openAgain {
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

// A connection that breaks without a sign costs a waiter seconds.
func TestWatch_FindsADeadConnectionWithinTenSeconds(t *testing.T) {
	onLine(t, func(t *testing.T, l *line) {
		a, _ := l.watch(t, "a")
		time.Sleep(10 * silence)
		shows(t, a, "nothing")
		l.last().dead.Store(true)
		begin := time.Now()
		<-a
		if took := time.Since(begin); took > 10*time.Second || l.connections() != 2 {
			t.Errorf("signal after %v over %d connections", took, l.connections())
		}
	})
}

func TestWatch_IsLostWhenTheConnectionCannotBeReplaced(t *testing.T) {
	onLine(t, func(t *testing.T, l *line) {
		a, stop := l.watch(t, "a")
		l.fail(errBroken)
		close(l.last().broken)
		time.Sleep(openWithin + time.Second)
		shows(t, a, "closed")
		stop()
		if _, _, err := l.store.Watch(t.Context(), "a"); !errors.Is(err, errBroken) || !errors.Is(err, lockfx.ErrStore) {
			t.Errorf("%v; want the reason", err)
		}
		l.fail(nil)
		l.watch(t, "a")
	})
}

// Where no notification can come, the server is not asked again for every waiter.
func TestWatch_AsksOnceWhereItCannotListen(t *testing.T) {
	onLine(t, func(t *testing.T, l *line) {
		l.fail(cannotListenError{"a reason"})
		for range 10 {
			if _, _, err := l.store.Watch(t.Context(), "a"); !errors.As(err, new(cannotListenError)) {
				t.Errorf("%v; want that it can't listen", err)
			}
			synctest.Wait()
		}
		if l.tries != 1 {
			t.Errorf("%d tries, want 1", l.tries)
		}
		if err := l.store.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.fail(nil)
		a, _ := l.watch(t, "a")
		l.fail(cannotListenError{"a pooler took over"})
		close(l.last().broken)
		time.Sleep(openAgain)
		shows(t, a, "closed")
	})
}

// Whatever frees a key that nobody watches notifies nobody, so the server has to know.
func TestWatch_MarksWhatIsWatched(t *testing.T) {
	onLine(t, func(t *testing.T, l *line) {
		l.watch(t, "a")
		l.watch(t, "b")
		l.watch(t, "b")
		_, stop := l.watch(t, "c")
		stop()
		time.Sleep(markEvery + silence)
		want := [][]string{{"a"}, {"b"}, {"c"}, {"a", "b"}}
		if got := l.last().marked(); !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%q was marked, want %q", got, want)
		}
		close(l.last().broken)
		time.Sleep(openAgain)
		synctest.Wait()
		if got := l.last().marked(); !slices.EqualFunc(got, [][]string{{"a", "b"}}, slices.Equal) {
			t.Errorf("%q was marked over a new connection, want a and b", got)
		}
		if late := markEvery + silence + 2*testWithin; late >= watchedFor {
			t.Errorf("a mark lasts %v, and may be renewed after %v", watchedFor, late)
		}
	})
}

// A waiter that comes back soon costs the server nothing, and a mark that is not renewed
// is not trusted for long.
func TestWatch_TrustsAMarkForAWhile(t *testing.T) {
	onLine(t, func(t *testing.T, l *line) {
		l.watch(t, "a")
		for range 5 {
			_, stop := l.watch(t, "b")
			stop()
		}
		time.Sleep(markEvery + silence)
		l.watch(t, "b")
		want := [][]string{{"a"}, {"b"}, {"a"}, {"b"}}
		if got := l.last().marked(); !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%q was marked, want %q", got, want)
		}
	})
}

// A process that stood still may have missed a notification.
func TestWatch_SignalsAKeyWhoseMarkHadEnded(t *testing.T) {
	onLine(t, func(t *testing.T, l *line) {
		a, _ := l.watch(t, "a")
		b, _ := l.watch(t, "b")
		l.last().forgets("b")
		time.Sleep(markEvery + silence)
		shows(t, a, "nothing")
		shows(t, b, "signal")
	})
}

func TestWatch_EndsWithItsContext(t *testing.T) {
	onLine(t, func(t *testing.T, l *line) {
		l.store.opener = func(ctx context.Context) (listener, error) {
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

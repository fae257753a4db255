package storekit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx/storekit"
)

// world is a registry whose source does what the test says.
type world struct {
	storekit.Watches
	tasks   storekit.Tasks
	sources []*storekit.Source // those that ran
	lost    chan error         // ends the source
}

func inWorld(t *testing.T, linger time.Duration, confirm func(*storekit.Source), test func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{lost: make(chan error)}
		w.Tasks, w.Linger = &w.tasks, linger
		w.Listen = func(ctx context.Context, s *storekit.Source) error {
			w.sources = append(w.sources, s)
			confirm(s)
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case err := <-w.lost:
				return err
			}
		}
		test(t, w)
		w.Close()
		if err := w.tasks.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func (w *world) watch(t *testing.T, name string) (freed <-chan struct{}, stop func()) {
	t.Helper()
	freed, stop, err := w.Watch(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return freed, stop
}

// state says what a watch has: nothing, a signal, or that it is lost.
func state(freed <-chan struct{}) string {
	select {
	case _, ok := <-freed:
		if ok {
			return "woken"
		}
		return "lost"
	default:
		return "quiet"
	}
}

func expect(t *testing.T, want string, watches ...<-chan struct{}) {
	t.Helper()
	var got string
	for _, freed := range watches {
		got += state(freed) + " "
	}
	if got != want+" " {
		t.Errorf("the watches are: %s, want %s", got, want)
	}
}

func TestWatches_WakeThoseOfTheName(t *testing.T) {
	inWorld(t, 0, (*storekit.Source).Ready, func(t *testing.T, w *world) {
		a1, stop1 := w.watch(t, "a")
		a2, _ := w.watch(t, "a")
		b, _ := w.watch(t, "b")
		s := w.sources[0]
		if names := s.Names(); !slices.Equal(names, []string{"a", "b"}) || state(s.Changed()) != "woken" {
			t.Errorf("the source knows %q", names)
		}
		s.Wake("a")
		s.Wake("a") // a full channel says the same
		s.Wake("c")
		expect(t, "woken woken quiet", a1, a2, b)
		expect(t, "quiet quiet", a1, a2)
		stop1()
		stop1()
		s.Wake("a")
		s.WakeAll()
		expect(t, "quiet woken woken", a1, a2, b)
		if len(w.sources) != 1 {
			t.Errorf("%d sources ran", len(w.sources))
		}
	})
}

func TestWatches_AreConfirmedOneByOne(t *testing.T) {
	inWorld(t, 0, func(*storekit.Source) {}, func(t *testing.T, w *world) {
		results := make(chan string, 3)
		for _, name := range []string{"a", "b", "c"} {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, _, err := w.Watch(ctx, name)
				results <- fmt.Sprint(name, " ", err)
			}()
		}
		synctest.Wait()
		w.sources[0].Confirm("b")
		w.sources[0].Confirm("none")
		if got := <-results; got != "b <nil>" {
			t.Errorf("first: %s", got)
		}
		time.Sleep(time.Hour) // the patience of the others is over
		if got := []string{<-results, <-results}; !slices.Contains(got, "a context deadline exceeded") || !slices.Contains(got, "c context deadline exceeded") {
			t.Errorf("then: %q", got)
		}
		if names := w.sources[0].Names(); !slices.Equal(names, []string{"b"}) {
			t.Errorf("the source still watches %q", names)
		}
	})
}

func TestWatches_AreLostWithTheirSource(t *testing.T) {
	errLost := errors.New("no leader")
	inWorld(t, time.Minute, func(s *storekit.Source) { s.Confirm("a") }, func(t *testing.T, w *world) {
		a, stop := w.watch(t, "a")
		refused := make(chan error, 1)
		go func() { _, _, err := w.Watch(t.Context(), "b"); refused <- err }()
		synctest.Wait()
		w.lost <- errLost
		if err := <-refused; !errors.Is(err, errLost) {
			t.Errorf("a watch that was not confirmed: %v", err)
		}
		expect(t, "lost", a)
		stop()
		again, _ := w.watch(t, "a") // by another source
		w.Close()
		expect(t, "lost", again)
		if len(w.sources) != 2 {
			t.Errorf("%d sources ran", len(w.sources))
		}
	})
}

// The source outlives its last watch for a while, so that a waiter that comes back opens
// nothing.
func TestWatches_SourceLingers(t *testing.T) {
	for linger, want := range map[time.Duration]int{0: 3, 30 * time.Second: 2} {
		inWorld(t, linger, (*storekit.Source).Ready, func(t *testing.T, w *world) {
			for _, pause := range []time.Duration{29 * time.Second, 31 * time.Second, 0} {
				freed, stop := w.watch(t, "a")
				w.sources[len(w.sources)-1].Wake("a")
				expect(t, "woken", freed)
				stop()
				time.Sleep(pause)
			}
			if len(w.sources) != want {
				t.Errorf("lingering for %v: %d sources ran, want %d", linger, len(w.sources), want)
			}
		})
	}
}

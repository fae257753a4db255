package pgstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fakeListener receives what the test sends.
type fakeListener struct {
	keys   chan string
	broken chan struct{} // closed when the connection breaks
	dead   atomic.Bool   // it breaks without a sign
	closed atomic.Bool

	mu     sync.Mutex // guards what follows
	marks  [][]string // what was marked
	missed []string   // what the next marks find unmarked
}

var errBroken = errors.New("connection reset")

func (f *fakeListener) next(ctx context.Context, changes <-chan struct{}) (string, bool, error) {
	quiet := time.NewTimer(silence)
	defer quiet.Stop()
	select {
	case key := <-f.keys:
		return key, false, nil
	case <-changes:
		return "", true, nil
	case <-f.broken:
		return "", false, errBroken
	case <-quiet.C:
		return "", false, nil
	case <-ctx.Done():
		return "", false, ctx.Err()
	}
}

func (f *fakeListener) test(context.Context) error {
	if f.dead.Load() {
		return errBroken
	}
	return nil
}

func (f *fakeListener) mark(_ context.Context, keys []string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.marks = append(f.marks, keys)
	return f.missed, nil
}

func (f *fakeListener) marked() [][]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.marks
}

// forgets makes each later mark find that key unmarked.
func (f *fakeListener) forgets(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.missed = []string{key}
}

func (f *fakeListener) close() { f.closed.Store(true) }

// line is where connections come from: one after another, or an error.
type line struct {
	store *Store

	mu     sync.Mutex // guards what follows
	opened []*fakeListener
	err    error
	tries  int
}

func (l *line) open(context.Context) (listener, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tries++
	if l.err != nil {
		return nil, l.err
	}
	e := &fakeListener{keys: make(chan string), broken: make(chan struct{})}
	l.opened = append(l.opened, e)
	return e, nil
}

// fail makes every further connection an error; nil makes it succeed.
func (l *line) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

func (l *line) last() *fakeListener {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opened[len(l.opened)-1]
}

func (l *line) connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.opened)
}

// onLine runs a test in a bubble of virtual time.
func onLine(t *testing.T, test func(t *testing.T, l *line)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &line{store: &Store{}}
		l.store.opener = l.open
		l.store.watches.Listen, l.store.watches.Tasks = l.store.listen, &l.store.tasks
		test(t, l)
		if err := l.store.Close(t.Context()); err != nil {
			t.Error(err)
		}
		for _, e := range l.opened {
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

// shows fails unless a channel shows what is wanted without waiting.
func shows(t *testing.T, freed <-chan struct{}, want string) {
	t.Helper()
	synctest.Wait()
	got := "nothing"
	select {
	case _, open := <-freed:
		got = map[bool]string{true: "signal", false: "closed"}[open]
	default:
	}
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

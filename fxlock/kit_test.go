package fxlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"
	"go.uber.org/goleak"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	key = "nightly"
	ttl = 30 * time.Second
	// The default heartbeat of ttl, and a moment: a renewal is due within it.
	oneBeat = 10*time.Second + time.Millisecond
)

// journal is what happened, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

func (j *journal) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := j.all(); !slices.Equal(got, want) {
		t.Errorf("what happened:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// inBubble runs f in a bubble of time that passes when everybody waits.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// started returns an application that was started, and is stopped when the test
// ends. A nil option is left out.
func started(t *testing.T, opts ...fx.Option) *fx.App {
	t.Helper()
	app := fx.New(append(opts, fx.NopLogger)...)
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := app.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return app
}

// lockIn starts an application with a lock called key and returns the lock.
func lockIn(t *testing.T, store lockfx.Store, opts []fxlock.Option, more ...fx.Option) *fxlock.Lock {
	t.Helper()
	var lock *fxlock.Lock
	started(t, append(more, fxlock.Module(key, append(opts, fxlock.WithStore(store))...), fx.Populate(&lock))...)
	return lock
}

// newLock returns a lock without an application that is disposed of when the test
// ends.
func newLock(t *testing.T, store lockfx.Store, opts ...fxlock.Option) *fxlock.Lock {
	t.Helper()
	lock, err := fxlock.New(append([]fxlock.Option{fxlock.WithKey(key), fxlock.WithTTL(ttl), fxlock.WithStore(store)}, opts...)...)
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

// options is a list of options, for readers.
func options(opts ...fxlock.Option) []fxlock.Option { return opts }

// ending is how a call ended.
type ending struct {
	err    error
	panics any
	exited bool // it ended its goroutine
}

// endingOf makes a call in a goroutine of its own and waits for its end.
func endingOf(call func() error) (e ending) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.exited = true
		defer func() {
			if r := recover(); r != nil {
				e.panics, e.exited = r, false
			}
		}()
		e.err = call()
		e.exited = false
	}()
	<-done
	return e
}

// wantText checks that err says all of parts.
func wantText(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one that says %q", parts)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("the error does not say %q: %v", p, err)
		}
	}
}

func wantIs(t *testing.T, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("error is %v, want one that matches %v", err, target)
		}
	}
}

// identical reports whether err is want itself, and not something around it.
func identical(err, want error) bool { return any(err) == any(want) }

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

package fxlock_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// One line for each transition, and an event that says the same.
func TestObserver_GetsWhatTheLogSays(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(t *testing.T, lock *fxlock.Lock, store *spyStore)
		opts []fxlock.Option
		want []string // level, message, fields
	}{
		"a run": {
			do:   func(t *testing.T, lock *fxlock.Lock, _ *spyStore) { must(t, lock.Run(t.Context(), pause)) },
			want: []string{"info acquired fence", "info released fence held_for reason=released", "info disposed"},
		},
		"refused": {
			do: func(t *testing.T, lock *fxlock.Lock, store *spyStore) {
				inTheWay(t, store)
				wantIs(t, lock.Run(t.Context(), pause), lockfx.ErrNotAcquired)
			},
			want: []string{"info refused held_by=somebody retry_after", "info disposed"},
		},
		"an outage": {
			do: func(t *testing.T, lock *fxlock.Lock, store *spyStore) {
				store.down = errBody
				wantIs(t, lock.Run(t.Context(), pause), lockfx.ErrStore)
			},
			want: []string{"warn failed error reason=store error", "info disposed"},
		},
		"a loss": {
			do: func(t *testing.T, lock *fxlock.Lock, store *spyStore) {
				wantIs(t, lock.Run(t.Context(), func() { store.takeAway(t) }), lockfx.ErrLost)
			},
			want: []string{
				"info acquired fence", "warn lost fence held_for reason=heartbeat failed",
				"info released fence held_for reason=heartbeat failed", "info disposed",
			},
		},
		"a loss by an error": {
			do: func(t *testing.T, lock *fxlock.Lock, store *spyStore) {
				store.renew = func() error { return errBody }
				wantIs(t, lock.Run(t.Context(), pause), lockfx.ErrLost)
			},
			want: []string{
				"info acquired fence", "warn lost error fence held_for reason=store error silent_for silent_since",
				"info released fence held_for reason=store error", "info disposed",
			},
		},
		"a renewal that is tried again": {
			do: func(t *testing.T, lock *fxlock.Lock, store *spyStore) {
				fail := true
				store.renew = func() error {
					if !fail {
						return nil
					}
					fail = false
					return errBody
				}
				must(t, lock.Run(t.Context(), pause))
			},
			opts: options(fxlock.WithRenewRetry()),
			want: []string{
				"info acquired fence", "warn renew failed error fence silent_for silent_since",
				"info released fence held_for reason=released", "info disposed",
			},
		},
		"a release that fails": {
			do: func(t *testing.T, lock *fxlock.Lock, store *spyStore) {
				store.release = func() (bool, error) { return false, errRelease }
				wantIs(t, lock.Run(t.Context(), pause), errRelease)
			},
			want: []string{"info acquired fence", "warn released error fence held_for reason=released", "info disposed"},
		},
		"a callback that panics": {
			do: func(t *testing.T, lock *fxlock.Lock, store *spyStore) {
				wantIs(t, lock.Run(t.Context(), func() { store.takeAway(t) }), lockfx.ErrLost)
			},
			opts: options(fxlock.WithOnLost(func(lockfx.Reason) { panic("boom") })),
			want: []string{
				"info acquired fence", "warn lost fence held_for reason=heartbeat failed", "error callback panicked error fence",
				"info released fence held_for reason=heartbeat failed", "info disposed",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				core, logs := observer.New(zapcore.DebugLevel)
				var events []lockfx.Event
				store := newSpyStore(new(journal))
				opts := append(slices.Clip(tt.opts), fxlock.WithKey("the-key"), fxlock.Observer(func(e lockfx.Event) { events = append(events, e) }))
				var lock *fxlock.Lock
				app := fx.New(fx.NopLogger, fx.Supply(zap.New(core, zap.AddCaller(), zap.AddStacktrace(zap.WarnLevel))), fx.Populate(&lock),
					fxlock.Module(key, append(opts, fxlock.WithStore(sameKey{store}))...))
				must(t, app.Start(t.Context()))
				tt.do(t, lock, store)
				must(t, app.Stop(t.Context()))
				var got []string
				for i, line := range logs.All() {
					got = append(got, lineText(t, line))
					checkEvent(t, line, events[i])
					if line.Stack != "" || line.Caller.Defined {
						t.Errorf("%q tells of the inside of this package: %v %s", line.Message, line.Caller, line.Stack)
					}
				}
				if !slices.Equal(got, tt.want) || len(events) != len(got) {
					t.Errorf("%d events; logged\n%s\nwant\n%s", len(events), strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
				}
			})
		})
	}
}

// sameKey makes a lock with a key of its own use the one that a spyStore looks at.
type sameKey struct{ *spyStore }

func (s sameKey) Acquire(ctx context.Context, _ string, d time.Duration) (lockfx.Grant, error) {
	return s.spyStore.Acquire(ctx, key, d)
}

func (s sameKey) Renew(ctx context.Context, _ string, token lockfx.Token, d time.Duration) (bool, error) {
	return s.spyStore.Renew(ctx, key, token, d)
}

func (s sameKey) Release(ctx context.Context, _ string, token lockfx.Token) (bool, error) {
	return s.spyStore.Release(ctx, key, token)
}

// pause is a body of one heartbeat and a half.
func pause() { time.Sleep(15 * time.Second) }

// lineText prints a line: level, message and the names of its fields, with values
// that are the same in each test. Every line has the lock and the key.
func lineText(t *testing.T, line observer.LoggedEntry) string {
	fields := line.ContextMap()
	if fields["lock"] != key || fields["key"] != "the-key" || line.LoggerName != "fxlock" {
		t.Errorf("%s of %q: lock %v, key %v", line.Message, line.LoggerName, fields["lock"], fields["key"])
	}
	text := line.Level.String() + " " + line.Message
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch name {
		case "lock", "key":
		case "reason", "held_by":
			text += fmt.Sprintf(" %s=%v", name, fields[name])
		default:
			text += " " + name
		}
	}
	return text
}

func checkEvent(t *testing.T, line observer.LoggedEntry, e lockfx.Event) {
	f := line.ContextMap()
	if e.Kind.String() != line.Message || e.Lock != f["lock"] || e.Key != f["key"] || e.At.IsZero() {
		t.Errorf("the line %v and the event %v differ", line, e)
	}
	if fence, logged := f["fence"]; logged && fence != int64(e.Token) || logged != (e.Token != 0) {
		t.Errorf("fence %v, event %v", fence, e)
	}
	if held, logged := f["held_for"]; logged && (held != e.HeldFor || e.HeldFor <= 0) {
		t.Errorf("held for %v, event %v", held, e.HeldFor)
	}
	if after, logged := f["retry_after"]; logged && after != e.RetryAfter {
		t.Errorf("retry after %v, event %v", after, e.RetryAfter)
	}
	if text, logged := f["error"]; logged && text != e.Err.Error() {
		t.Errorf("error %v, event %v", text, e.Err)
	}
}

// stderrOf returns what f writes to the standard error.
func stderrOf(t *testing.T, f func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	must(t, err)
	old := os.Stderr
	os.Stderr = w
	defer func() { os.Stderr = old }()
	read := make(chan string)
	go func() {
		text, _ := io.ReadAll(r)
		read <- string(text)
	}()
	f()
	must(t, w.Close())
	text := <-read
	must(t, r.Close())
	return text
}

// A lock that nobody chose a store for says so once, wherever it can.
func TestModule_WarnsOnceOfADefaultMemoryStore(t *testing.T) {
	const warning = `fxlock: lock "nightly": no store was chosen: other processes are not excluded; ` +
		"add fxlock.WithStore, StoreFrom or StoreFromGraph; use WithStore(fxlock.NewMemoryStore()) if this is intended\n"
	useIt := func(opts ...fx.Option) {
		var lock *fxlock.Lock
		app := fx.New(append(opts, fx.NopLogger, fx.Populate(&lock))...)
		for range 2 {
			must(t, app.Start(t.Context()))
			must(t, lock.Run(t.Context(), func() {}))
			must(t, app.Stop(t.Context()))
		}
	}
	if got := stderrOf(t, func() { useIt(fxlock.Module(key)) }); got != warning {
		t.Errorf("stderr has %q, want %q", got, warning)
	}
	for name, f := range map[string]func(){
		"not built":    func() { must(t, fxlock.Validate(fxlock.Module(key))); must(t, newErr(fxlock.Module(key))) },
		"chosen":       func() { useIt(fxlock.Module(key, memory())) },
		"by a ctor":    func() { useIt(fxlock.Module(key, fxlock.StoreFrom(newStore))) },
		"by the graph": func() { useIt(fxlock.Module(key, fxlock.StoreFromGraph()), fx.Provide(newStore)) },
	} {
		if got := stderrOf(t, f); got != "" {
			t.Errorf("%s: stderr has %q, want nothing", name, got)
		}
	}
	core, logs := observer.New(zapcore.WarnLevel)
	if got := stderrOf(t, func() { useIt(fxlock.Module(key), fx.Supply(zap.New(core))) }); got != "" {
		t.Errorf("stderr has %q although there is a logger", got)
	}
	if lines := logs.All(); len(lines) != 1 || lines[0].Level != zapcore.WarnLevel || lines[0].ContextMap()["lock"] != key ||
		lines[0].Message != "no store was chosen: other processes are not excluded" {
		t.Errorf("the logger has %v", lines)
	}
	alone := stderrOf(t, func() {
		lock, err := fxlock.New(fxlock.WithKey(key), fxlock.WithTTL(ttl))
		must(t, err)
		must(t, lock.Run(t.Context(), func() {}))
		must(t, lock.Dispose(t.Context()))
	})
	if alone != warning {
		t.Errorf("stderr has %q, want %q", alone, warning)
	}
}

// Without a logger a lock says nothing, whatever happens to it.
func TestLock_IsSilentWithoutALogger(t *testing.T) {
	got := stderrOf(t, func() {
		inBubble(t, func(t *testing.T) {
			store := newSpyStore(new(journal))
			lock := lockIn(t, store, nil)
			wantIs(t, lock.Run(t.Context(), func() { store.takeAway(t) }), lockfx.ErrLost)
			store.down = errBody
			wantIs(t, lock.Run(t.Context(), func() {}), lockfx.ErrStore)
		})
	})
	if got != "" {
		t.Errorf("it said %q", got)
	}
}

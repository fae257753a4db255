package hooks_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"
	"go.uber.org/goleak"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/hooks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBoom = errors.New("boom")

// script is a lifecycle and what its hooks did.
type script struct {
	*hooks.Lifecycle
	did []string
}

func newScript() *script { return &script{Lifecycle: hooks.New(time.Minute)} }

// add appends a hook. A nil start or stop is left out.
func (s *script) add(name string, start, stop func() error) {
	var h fx.Hook
	if start != nil {
		h.OnStart = func(context.Context) error { s.did = append(s.did, "start "+name); return start() }
	}
	if stop != nil {
		h.OnStop = func(context.Context) error { s.did = append(s.did, "stop "+name); return stop() }
	}
	s.Append(h)
}

// Stop waits for no hook that is left running.
func (s *script) Stop(ctx context.Context) error {
	_, err := s.Lifecycle.Stop(ctx)
	return err
}

func (s *script) expect(t *testing.T, want string) {
	t.Helper()
	if got := strings.Join(s.did, ", "); got != want {
		t.Errorf("hooks did %q, want %q", got, want)
	}
}

func ok() error     { return nil }
func fail() error   { return errBoom }
func panics() error { panic(errBoom) }
func exits() error  { runtime.Goexit(); return nil }

func TestHooksStartInOrderAndStopInReverse(t *testing.T) {
	s := newScript()
	s.add("a", ok, ok)
	s.add("b", nil, ok)
	s.add("c", ok, nil)
	if err := s.Start(t.Context()); err != nil {
		t.Error(err)
	}
	s.add("d", ok, ok) // by hand
	if err := s.Start(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	s.expect(t, "start a, start c, start d, stop d, stop b, stop a")
}

// What has started stops, and what has nothing to start; what failed, and what
// would have started behind it, does not.
func TestAfterAFailedStart(t *testing.T) {
	for name, start := range map[string]func() error{"fails": fail, "panics": panics, "exits": exits} {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			s.add("a", ok, ok)
			s.add("b", start, ok)
			s.add("c", nil, ok)
			s.add("d", ok, ok)
			for range 2 { // it stays failed
				inGoroutine(func() {
					if err := s.Start(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "OnStart hook: ") {
						t.Errorf("start: %v", err)
					}
				})
			}
			if err := s.Stop(t.Context()); err != nil {
				t.Error(err)
			}
			s.expect(t, "start a, start b, stop c, stop a")
		})
	}
}

func inGoroutine(f func()) {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	<-done
}

func TestEveryHookStopsWhateverTheOthersDo(t *testing.T) {
	for name, tt := range map[string]struct {
		stop func() error
		says string
	}{"fails": {fail, "OnStop hook: boom"}, "panics": {panics, "OnStop hook: panic: boom"}, "exits": {exits, "OnStop hook: ended its goroutine"}} {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			s.add("a", nil, tt.stop)
			s.add("b", nil, ok)
			s.add("c", nil, tt.stop)
			inGoroutine(func() {
				err := s.Stop(t.Context())
				if err == nil || strings.Count(err.Error(), tt.says) != 2 {
					t.Errorf("stop: %v, want %q of two hooks", err, tt.says)
				}
			})
			s.expect(t, "stop c, stop b, stop a")
		})
	}
}

func TestNothingStartsWhenTheContextHasEnded(t *testing.T) {
	s := newScript()
	s.add("a", ok, ok)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errBoom)
	if err := s.Start(ctx); !errors.Is(err, errBoom) {
		t.Errorf("start: %v", err)
	}
	s.expect(t, "")
}

func TestNothingStartsAfterTheStop(t *testing.T) {
	s := newScript()
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	s.add("a", ok, ok)
	if err := s.Start(t.Context()); err == nil || err.Error() != "the run is over" {
		t.Errorf("start: %v", err)
	}
	s.expect(t, "")
}

// Start returns when everything has started, also what another goroutine starts.
// Who waits for it does not wait for ever.
func TestStartWaitsForOthers(t *testing.T) {
	for name, tt := range map[string]struct {
		takes time.Duration
		wait  func(context.Context, *script) error
		want  error
	}{
		"another start":              {59 * time.Second, func(ctx context.Context, s *script) error { return s.Start(ctx) }, nil},
		"a start that takes long":    {2 * time.Minute, func(ctx context.Context, s *script) error { return s.Start(ctx) }, lockfx.ErrTimeout},
		"the stop":                   {59 * time.Second, func(ctx context.Context, s *script) error { return s.Stop(ctx) }, nil},
		"a stop behind a long start": {2 * time.Minute, func(ctx context.Context, s *script) error { return s.Stop(ctx) }, lockfx.ErrTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				done := make(chan error, 1)
				var ready atomic.Bool
				s.add("a", func() error { time.Sleep(tt.takes); ready.Store(true); return nil }, nil)
				go func() { done <- s.Start(t.Context()) }()
				synctest.Wait()
				if err := tt.wait(t.Context(), s); !errors.Is(err, tt.want) || ready.Load() != (tt.want == nil) {
					t.Errorf("waited with %v; started: %v", err, ready.Load())
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Hooks may be appended while others run.
func TestAppendFromWithinAHook(t *testing.T) {
	s := newScript()
	s.add("a", func() error { s.add("b", ok, ok); return nil }, func() error { s.add("c", nil, ok); return nil })
	if err := errors.Join(s.Start(t.Context()), s.Stop(t.Context())); err != nil {
		t.Error(err)
	}
	if want := []string{"start a", "start b", "stop b", "stop a", "stop c"}; !slices.Equal(s.did, want) {
		t.Errorf("hooks did %q, want %q", s.did, want)
	}
}

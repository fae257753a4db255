package layered

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
)

// everything returns options that switch all layers on, and a probe of them.
func everything(t *testing.T) ([]Option, probe) {
	t.Helper()
	locker, err := New(WithDir(t.TempDir()))
	must(t, err)
	opts := []Option{WithLocker(locker), WithKey("k"), onlyIn(LayerMemory, LayerWorker, LayerFlock, LayerPoll)}
	path, err := LockFile(opts...)
	must(t, err)
	t.Cleanup(files.CloseIdle)
	return opts, probe{t, locker, path, name{"", "k"}}
}

func (p probe) allFree() {
	p.t.Helper()
	for l := range Layer(layers) {
		if p.held(l) {
			p.t.Errorf("%v is still held", l)
		}
	}
}

func TestPredicateDecidesTwice(t *testing.T) {
	for _, tt := range []struct {
		failsAt State
		want    []string
	}{
		{StatePredicateBefore, []string{"predicate-before", "failed in predicate-before"}},
		{StatePredicateAfter, []string{"predicate-before", "predicate-after", "failed in predicate-after"}},
		{0, []string{"predicate-before", "predicate-after", "action"}},
	} {
		opts, p := everything(t)
		var seen []string
		res, err := WithLock(t.Context(), "in", func(context.Context, Call[string]) (int, error) {
			seen = append(seen, "action")
			return 7, nil
		}, append(opts,
			WithPredicate(func(_ context.Context, call Call[string]) (bool, error) {
				seen = append(seen, call.State.String())
				return call.State != tt.failsAt, nil
			}),
			WithOnCheckFailed(func(ctx context.Context, call Call[string]) error {
				seen = append(seen, "failed in "+call.State.String())
				p.allFree()
				// It may take the very lock.
				_, err := WithLock(ctx, "in", nothing[string], opts...)
				return err
			}))...)
		must(t, err)
		if !slices.Equal(seen, tt.want) {
			t.Errorf("saw %q, want %q", seen, tt.want)
		}
		if ran := tt.failsAt == 0; ran != (res.Value == 7) || ran != (res.State == StateExecuted) || !ran && res.State != tt.failsAt {
			t.Errorf("result %+v", res)
		}
		p.allFree()
	}
}

func TestErrorsOfCallbacksComeBackAsTheyAre(t *testing.T) {
	mine := errors.New("mine")
	fail := func(at State) Option {
		return WithPredicate(func(_ context.Context, call Call[string]) (bool, error) {
			if call.State == at {
				return true, mine // an error wins over true
			}
			return true, nil
		})
	}
	refuse := WithPredicate(func(context.Context, Call[string]) (bool, error) { return false, nil })
	notify := WithOnCheckFailed(func(context.Context, Call[string]) error { return mine })
	never := WithOnCheckFailed(func(context.Context, Call[string]) error {
		t.Error("an error is no failed check")
		return nil
	})
	for name, more := range map[string][]Option{
		"predicate-before": {fail(StatePredicateBefore), never},
		"predicate-after":  {fail(StatePredicateAfter), never},
		"on-check-failed":  {refuse, notify},
		"executed":         nil,
	} {
		opts, p := everything(t)
		res, err := WithLock(t.Context(), "in", func(context.Context, Call[string]) (int, error) {
			if name != "executed" {
				t.Errorf("%s: the action ran", name)
			}
			return 7, mine
		}, append(opts, more...)...)
		if err != mine { //nolint:errorlint // not even wrapped
			t.Errorf("%s: err = %v", name, err)
		}
		if name == "executed" && res.Value != 7 {
			t.Error("the value beside an error was dropped")
		}
		p.allFree()
	}
}

// ways to leave a callback other than by returning
var exits = map[string]func(){
	"panic":  func() { panic("boom") },
	"Goexit": runtime.Goexit,
}

func TestPanicAndGoexitGiveEverythingBack(t *testing.T) {
	for how, exit := range exits {
		for _, where := range []string{"predicate-before", "predicate-after", "executed", "on-check-failed"} {
			opts, p := everything(t)
			here := func(at string) {
				if at == where {
					exit()
				}
			}
			var recovered any
			var wg sync.WaitGroup
			wg.Go(func() {
				defer func() { recovered = recover() }()
				_, err := WithLock(t.Context(), "in", func(context.Context, Call[string]) (int, error) {
					here("executed")
					return 0, nil
				}, append(opts,
					WithPredicate(func(_ context.Context, call Call[string]) (bool, error) {
						here(call.State.String())
						return where != "on-check-failed", nil
					}),
					WithOnCheckFailed(func(context.Context, Call[string]) error {
						here("on-check-failed")
						return nil
					}))...)
				t.Errorf("%s in %s: it returned %v", how, where, err)
			})
			wg.Wait()
			if want := map[string]any{"panic": "boom", "Goexit": nil}[how]; recovered != want {
				t.Errorf("%s in %s: recovered %v", how, where, recovered)
			}
			p.allFree()
			must(t, p.locker.Close(t.Context())) // no call is counted as running
		}
	}
}

func TestEndOfTheContextEndsTheWaitAtEveryLayer(t *testing.T) {
	for l := range Layer(layers) {
		opts, p := everything(t)
		switch l {
		case LayerFlock: // the end of a wait is no reason to skip it
			opts = append(opts, WithScope(Scope{Flock: Auto, Poll: Auto}))
		case LayerPoll:
			opts = append(opts, onlyIn(LayerPoll))
		}
		free := p.contend(l)
		gone := errors.New("gone")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Millisecond, gone)
		_, err := WithLock(ctx, "in", nothing[string], opts...)
		cancel()
		var layer *LayerError
		if !errors.Is(err, gone) || errors.Is(err, lockfx.ErrTimeout) || !errors.As(err, &layer) || layer.Layer != l {
			t.Errorf("%v: err = %v, want the cause", l, err)
		}
		free()
		eventually(t, "no thread sleeps", func() bool { return files.Parked() == 0 })
		p.allFree()
	}
}

func TestDeadContextRunsNothing(t *testing.T) {
	opts, p := everything(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := WithLock(ctx, "in", nothing[string], append(opts, WithPredicate(func(context.Context, Call[string]) (bool, error) {
		t.Error("the predicate ran")
		return true, nil
	}))...)
	if !errors.Is(err, context.Canceled) || err.Error() != `acquire "k": context canceled` {
		t.Errorf("err = %v", err)
	}
	p.allFree()
}

// Cancelled in a check, the call goes no further, even without a layer to wait for.
func TestContextThatEndsInACheckRunsNothing(t *testing.T) {
	for _, at := range []State{StatePredicateBefore, StatePredicateAfter} {
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		_, err := WithLock(ctx, "in", func(context.Context, Call[string]) (int, error) {
			t.Error("the action ran")
			return 0, nil
		}, WithKey("k"), onlyIn(), WithPredicate(func(_ context.Context, call Call[string]) (bool, error) {
			if ctx.Err() != nil {
				t.Errorf("%v ran", call.State)
			}
			if call.State == at {
				cancel(gone)
			}
			return true, nil
		}))
		if !errors.Is(err, gone) || err.Error() != `acquire "k": context canceled: gone` {
			t.Errorf("%v: err = %v", at, err)
		}
	}
}

func TestLossOfThePollLayerCancelsTheAction(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		mine := errors.New("mine")
		opts := []Option{WithDir(dir), WithKey("k"), onlyIn(LayerPoll)}
		for _, returned := range []error{nil, mine} {
			_, err := WithLock(t.Context(), "in", func(ctx context.Context, call Call[string]) (int, error) {
				must(t, os.Remove(call.Lock.File+pollSuffix))
				<-ctx.Done()
				var lost *LostError
				if cause := context.Cause(ctx); !errors.As(cause, &lost) || lost.Key != "k" || lost.Layer != LayerPoll {
					t.Errorf("the action's context ended with %v", cause)
				}
				return 0, returned
			}, opts...)
			if !errors.Is(err, lockfx.ErrLost) || returned != nil && !strings.HasPrefix(err.Error(), "mine\n") {
				t.Errorf("err = %v", err)
			}
		}
		_, err := WithLock(t.Context(), "in", func(ctx context.Context, call Call[string]) (int, error) {
			must(t, os.Remove(call.Lock.File+pollSuffix))
			<-ctx.Done()
			return 0, context.Cause(ctx)
		}, opts...)
		if !errors.Is(err, lockfx.ErrLost) || strings.Contains(err.Error(), "\n") {
			t.Errorf("err = %v, want the loss once", err)
		}
	})
}

func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	_, err := WithLock[hidden, int](t.Context(), hidden{1}, nil,
		WithDir(""), WithFile("a\x00b"), WithTimeout(-time.Second), WithTimeoutResult(-1), WithStale(time.Second),
		WithScope(Scope{Memory: Auto, Poll: 9}), WithLocker(nil), nil,
		WithPredicate(func(context.Context, Call[string]) (bool, error) { return true, nil }),
		WithOnCheckFailed[hidden](nil))
	if !errors.Is(err, lockfx.ErrConfig) {
		t.Fatalf("err = %v", err)
	}
	want := []string{
		`layered.WithDir(""): must not be empty`,
		`layered.WithFile("a\x00b"): must not contain NUL`,
		`layered.WithTimeout(-1s): must not be negative`,
		`layered.WithTimeoutResult(-1ns): must not be negative`,
		`layered.WithStale(1s): must be at least 2s`,
		`layered.WithScope(layered.Scope{Memory: Auto, Poll: Mode(9)}): memory must be Off or On`,
		`layered.WithScope(layered.Scope{Memory: Auto, Poll: Mode(9)}): poll must be Off, On or Auto`,
		`layered.WithLocker(*layered.Locker): must not be nil`,
		`option 8 is nil`,
		`layered.WithOnCheckFailed(func of layered.Call[github.com/lockfx/lockfx/layered.hidden]): must not be nil`,
		`layered.WithLock: the action must not be nil`,
		`layered.WithPredicate: must take a layered.Call of the input's type, which is layered.hidden`,
		`layered.WithKey: is required, since the input has no stable hash: the input has the unexported field a`,
	}
	if got := strings.Split(err.Error(), "\n"); !slices.Equal(got, prefixed("invalid configuration: ", want)) {
		t.Errorf("faults:\n%s", err)
	}
}

func prefixed(prefix string, lines []string) (out []string) {
	for _, l := range lines {
		out = append(out, prefix+l)
	}
	return out
}

func TestOptionsPrintThemselves(t *testing.T) {
	for want, o := range map[string]Option{
		`layered.WithKey("a\"b")`:                                 WithKey(`a"b`),
		`layered.WithNamespace("n")`:                              WithNamespace("n"),
		`layered.WithTimeout(1.5s)`:                               WithTimeout(1500 * time.Millisecond),
		`layered.WithTimeoutResult(0s)`:                           WithTimeoutResult(0),
		`layered.WithScope(layered.Scope{Flock: Off, Poll: On})`:  WithScope(Scope{Flock: Off, Poll: On}),
		`layered.WithDir("/locks")`:                               WithDir("/locks"),
		`layered.WithFile("/locks/a")`:                            WithFile("/locks/a"),
		`layered.WithStale(20s)`:                                  WithStale(20 * time.Second),
		`layered.WithLocker(*layered.Locker)`:                     WithLocker(shared),
		`layered.WithPredicate(func of layered.Call[int])`:        WithPredicate(func(context.Context, Call[int]) (bool, error) { return true, nil }),
		`layered.WithOnCheckFailed(func of layered.Call[string])`: WithOnCheckFailed(func(context.Context, Call[string]) error { return nil }),
	} {
		if got := o.String(); got != want {
			t.Errorf("%s prints %s", want, got)
		}
	}
}

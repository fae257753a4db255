package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

// before is the last token that the lock accepted, and good the one that the
// store grants next.
const (
	before lockfx.Token = 10
	good   lockfx.Token = 11
)

var (
	errBoom  = errors.New("boom")
	errCause = errors.New("the user went away")
)

// attempt is one acquisition that goes wrong in some way, or does not.
type attempt struct {
	name    string
	answer  func(call) (lockfx.Grant, error) // the store's; nil grants
	prepare func(call)                       // changes what is there before
	config  func(*lifecycle.Config)
	within  time.Duration // the caller's time limit, if any

	errs     []error      // what the error must match; none: a plain refusal
	exits    bool         // the caller's goroutine ends
	unasked  bool         // the store is never asked
	back     lockfx.Token // the lease that is given back, if any
	disposed bool         // the lock is disposed of
	hopeless bool         // no later acquisition can go well
}

// call is an Acquire under way at the store.
type call struct {
	*rig
	ctx context.Context         // what the store got, or before that the caller's
	end context.CancelCauseFunc // ends the caller's context
}

func says(g lockfx.Grant, err error) func(call) (lockfx.Grant, error) {
	return func(call) (lockfx.Grant, error) { return g, err }
}

// after is says once do was done.
func after(do func(call), g lockfx.Grant, err error) func(call) (lockfx.Grant, error) {
	return func(c call) (lockfx.Grant, error) {
		do(c)
		return g, err
	}
}

func ending(c call)        { c.end(nil) }
func endingWhy(c call)     { c.end(errCause) }
func hanging(c call)       { <-c.ctx.Done() }
func panicking(call)       { panic(errBoom) }
func exiting(call)         { runtime.Goexit() }
func suspended(c call)     { c.clock.leap(trusted, 0) }
func steppedBack(c call)   { c.clock.leap(-time.Hour, 0) }
func lateBackwards(c call) { c.clock.leap(-time.Hour, trusted) }
func hasty(c call)         { c.clock.hasty.Store(true) }

func sleeping(d time.Duration) func(call) {
	return func(call) {
		time.Sleep(d)
		synctest.Wait() // what was due at this instant has happened
	}
}

func timers(n int64) func(call) {
	return func(c call) { c.clock.left.Store(n) }
}

func typedNil(c call) { c.clock.typedNil.Store(true) }

// both does one after the other.
func both(first, second func(call)) func(call) {
	return func(c call) {
		first(c)
		second(c)
	}
}

// releasing makes the store release in this way.
func releasing(a answer) func(call) {
	return func(c call) { c.store.releases(a) }
}

// disposing disposes of the lock, which waits for the acquisition.
func disposing(c call) {
	go func() { _ = c.Dispose(background) }()
	synctest.Wait()
}

// disposingBriefly disposes of the lock without waiting.
func disposingBriefly(c call) {
	dead, cancel := context.WithCancel(background)
	cancel()
	if err := c.Dispose(dead); !errors.Is(err, context.Canceled) {
		panic(fmt.Sprintf("Dispose during an acquisition: %v", err))
	}
}

// noError is an error that is nil only to those who look inside.
type noError struct{}

func (*noError) Error() string { return "none" }

var (
	granted  = lockfx.Grant{OK: true, Token: good}
	refused  = lockfx.Grant{HeldBy: "another", RetryAfter: time.Second}
	dead     = []error{context.Canceled}
	deadWhy  = []error{context.Canceled, errCause}
	expired  = []error{context.DeadlineExceeded}
	broken   = []error{lockfx.ErrStore, errBoom}
	regress  = []error{lockfx.ErrFenceRegressed}
	badGrant = []error{lockfx.ErrBadGrant}
	late     = []error{lockfx.ErrStore}
	disposal = []error{lockfx.ErrDisposed}
)

var noGrants = []attempt{
	{name: "plain refusal", answer: says(lockfx.Grant{}, nil)},
	{name: "refusal that names the holder", answer: says(refused, nil)},
	{name: "token without OK", answer: says(lockfx.Grant{Token: good}, nil), errs: badGrant},
	{name: "negative token without OK", answer: says(lockfx.Grant{Token: -1}, nil), errs: badGrant},
	{name: "smallest token without OK", answer: says(lockfx.Grant{Token: math.MinInt64}, nil), errs: badGrant},
	{name: "greatest token without OK", answer: says(lockfx.Grant{Token: math.MaxInt64}, nil), errs: badGrant},
	{name: "OK without a token", answer: says(lockfx.Grant{OK: true}, nil), errs: badGrant},
	{name: "OK without a token, held by another", answer: says(lockfx.Grant{OK: true, HeldBy: "another"}, nil), errs: badGrant},
	{name: "OK with token -1", answer: says(lockfx.Grant{OK: true, Token: -1}, nil), errs: badGrant},
	{name: "OK with the negated token", answer: says(lockfx.Grant{OK: true, Token: -good}, nil), errs: badGrant},
	{name: "OK with the smallest token", answer: says(lockfx.Grant{OK: true, Token: math.MinInt64}, nil), errs: badGrant},

	{name: "token equal to the last", answer: says(lockfx.Grant{OK: true, Token: before}, nil), errs: regress, back: before},
	{name: "token one below the last", answer: says(lockfx.Grant{OK: true, Token: before - 1}, nil), errs: regress, back: before - 1},
	{name: "token 1 again", answer: says(lockfx.Grant{OK: true, Token: 1}, nil), errs: regress, back: 1},
	{
		name: "after the greatest token nothing rises", config: func(c *lifecycle.Config) { c.Last = math.MaxInt64 },
		answer: says(lockfx.Grant{OK: true, Token: math.MaxInt64}, nil), errs: regress, back: math.MaxInt64, hopeless: true,
	},

	{name: "outage", answer: says(lockfx.Grant{}, errBoom), errs: broken},
	{name: "grant with an error", answer: says(granted, errBoom), errs: broken, back: good},
	{name: "OK with an error", answer: says(lockfx.Grant{OK: true}, errBoom), errs: broken},
	{name: "OK with a negative token and an error", answer: says(lockfx.Grant{OK: true, Token: -5}, errBoom), errs: broken},
	{name: "token with an error", answer: says(lockfx.Grant{Token: good}, errBoom), errs: broken},
	{name: "refusal with an error", answer: says(refused, errBoom), errs: broken},
	{name: "regressed token with an error", answer: says(lockfx.Grant{OK: true, Token: before}, errBoom), errs: broken, back: before},
	{name: "contention told as an error", answer: says(lockfx.Grant{}, lockfx.ErrNotAcquired), errs: late},
	{name: "another lock's trouble as an error", answer: says(lockfx.Grant{}, lockfx.ErrNotIdle), errs: late},
	{name: "grant with ErrNotAcquired", answer: says(granted, lockfx.ErrNotAcquired), errs: late, back: good},
	{name: "typed nil error", answer: says(lockfx.Grant{}, (*noError)(nil)), errs: late},
	{name: "grant with a typed nil error", answer: says(granted, (*noError)(nil)), errs: late, back: good},
	{name: "a dead context of the store's own", answer: says(lockfx.Grant{}, context.Canceled), errs: []error{lockfx.ErrStore, context.Canceled}},

	{name: "panic with an error", answer: after(panicking, lockfx.Grant{}, nil), errs: broken},
	{name: "panic with a string", answer: after(func(call) { panic("boom") }, granted, nil), errs: late},
	{name: "panic with nil", answer: after(func(call) { panic(nil) }, granted, nil), errs: late},
	{name: "panic after granting", answer: func(call) (lockfx.Grant, error) {
		defer panic(errBoom)
		return granted, nil
	}, errs: broken},
	{name: "the goroutine ends before granting", answer: after(exiting, lockfx.Grant{}, nil), exits: true},
	{name: "the goroutine ends after granting", answer: func(call) (lockfx.Grant, error) {
		defer runtime.Goexit()
		return granted, nil
	}, exits: true},
	{name: "typed nil store", config: func(c *lifecycle.Config) { c.Store = (*script)(nil) }, errs: late, unasked: true, hopeless: true},
	{name: "store around nothing", config: func(c *lifecycle.Config) { c.Store = struct{ lockfx.Store }{} }, errs: late, unasked: true, hopeless: true},

	{name: "dead context", prepare: ending, errs: dead, unasked: true},
	{name: "dead context with a cause", prepare: endingWhy, errs: deadWhy, unasked: true},
	{name: "context out of time", within: 1, prepare: sleeping(time.Nanosecond), errs: expired, unasked: true},
	{
		name: "dead with the cause of a busy lock", errs: []error{context.Canceled, lockfx.ErrNotIdle}, unasked: true,
		prepare: func(c call) { c.end(lockfx.ErrNotIdle) },
	},
	{name: "context ends during a grant", answer: after(ending, granted, nil), errs: dead, back: good},
	{name: "context ends with a cause during a grant", answer: after(endingWhy, granted, nil), errs: deadWhy, back: good},
	{name: "context ends as the grant returns", answer: func(c call) (lockfx.Grant, error) {
		defer c.end(nil)
		return granted, nil
	}, errs: dead, back: good},
	{name: "context ends, and the store obeys", answer: after(ending, lockfx.Grant{}, context.Canceled), errs: dead},
	{name: "context ends, grant with an error", answer: after(ending, granted, errBoom), errs: dead, back: good},
	{name: "context ends, regressed grant", answer: after(ending, lockfx.Grant{OK: true, Token: before}, nil), errs: regress, back: before},
	{name: "context ends, malformed grant", answer: after(ending, lockfx.Grant{OK: true}, nil), errs: badGrant},
	{name: "context ends, refusal", answer: after(ending, refused, nil)},
	{name: "context ends, panic", answer: after(both(ending, panicking), granted, nil), errs: dead},
	{name: "out of time during a grant", within: time.Second, answer: after(sleeping(time.Second), granted, nil), errs: expired, back: good},
	{name: "out of time, and the store obeys", within: time.Second, answer: after(hanging, lockfx.Grant{}, context.DeadlineExceeded), errs: expired},
	{name: "out of time, and the store grants then", within: time.Second, answer: after(hanging, granted, nil), errs: expired, back: good},

	{name: "grant at the very deadline", answer: after(sleeping(trusted), granted, nil), errs: late, back: good},
	{name: "grant long after the deadline", answer: after(sleeping(time.Hour), granted, nil), errs: late, back: good},
	{name: "no answer before the deadline", answer: after(hanging, lockfx.Grant{}, context.Canceled), errs: late},
	{name: "grant once the deadline ended the request", answer: after(hanging, granted, nil), errs: late, back: good},
	{name: "grant after a suspension: late by the wall clock", answer: after(suspended, granted, nil), errs: late, back: good},
	{name: "late by the monotonic clock, the wall was set back", answer: after(lateBackwards, granted, nil), errs: late, back: good},
	{name: "timer in a hurry ends the request", prepare: hasty, answer: after(hanging, granted, nil), errs: late, back: good},
	{name: "outage after a suspension", answer: after(suspended, lockfx.Grant{}, errBoom), errs: broken},

	{name: "disposed of before", prepare: func(c call) { _ = c.Dispose(background) }, errs: disposal, unasked: true, disposed: true},
	{name: "disposed of during a grant", answer: after(disposing, granted, nil), errs: disposal, back: good, disposed: true},
	{name: "disposed of, and the store obeys", answer: after(disposing, lockfx.Grant{}, context.Canceled), errs: disposal, disposed: true},
	{name: "disposed of, refusal", answer: after(disposing, refused, nil), disposed: true},
	{name: "disposed of, regressed grant", answer: after(disposing, lockfx.Grant{OK: true, Token: before}, nil), errs: regress, back: before, disposed: true},
	{name: "disposed of, panic", answer: after(both(disposing, panicking), granted, nil), errs: disposal, disposed: true},
	{name: "disposed of without waiting, granted then", answer: after(disposingBriefly, granted, nil), errs: disposal, back: good, disposed: true},

	{name: "no timer for the expiry", prepare: timers(0), errs: []error{lifecycle.ErrNoTimer}, unasked: true},
	{name: "no timer for the heartbeat", prepare: timers(1), errs: []error{lifecycle.ErrNoTimer}, back: good},
	{name: "a nil pointer for the expiry", prepare: both(typedNil, timers(0)), errs: []error{lifecycle.ErrNoTimer}, unasked: true},
	{name: "a nil pointer for the heartbeat", prepare: both(typedNil, timers(1)), errs: []error{lifecycle.ErrNoTimer}, back: good},

	{name: "give-back fails", answer: after(ending, granted, nil), prepare: releasing(always(false, errBoom)), errs: dead, back: good},
	{name: "give-back refused", answer: after(ending, granted, nil), prepare: releasing(always(false, nil)), errs: dead, back: good},
	{name: "give-back panics", answer: after(ending, granted, nil), prepare: releasing(once(func(context.Context) { panic(errBoom) })), errs: dead, back: good},
	{name: "give-back hangs until its bound", answer: after(ending, granted, nil), prepare: releasing(never), errs: dead, back: good},
	{name: "give-back ends the goroutine", answer: after(ending, granted, nil), prepare: releasing(once(func(context.Context) { runtime.Goexit() })), exits: true, back: good},
}

// The controls are granted, so that the matrix can tell the difference.
var grants = []attempt{
	{name: "grant"},
	{name: "greatest token", answer: says(lockfx.Grant{OK: true, Token: math.MaxInt64}, nil)},
	{name: "first token", config: func(c *lifecycle.Config) { c.Last = 0 }, answer: says(lockfx.Grant{OK: true, Token: 1}, nil)},
	{name: "grant with what a refusal carries", answer: says(lockfx.Grant{OK: true, Token: good, HeldBy: "another", RetryAfter: 1}, nil)},
	{name: "grant just before the deadline", answer: after(sleeping(trusted-1), granted, nil)},
	{name: "grant just in time", within: time.Second, answer: after(sleeping(time.Second-1), granted, nil)},
	{name: "wall clock set back during the grant", answer: after(steppedBack, granted, nil)},
	{name: "two timers are enough", prepare: timers(2)},
	{name: "timers in a hurry", prepare: hasty},
}

// try makes the attempt by acquiring, or by a run. It returns whether the lock was
// got, and how the call ended.
func (a attempt) try(r *rig, byRun bool) (got bool, o outcome) {
	ctx, end := context.WithCancelCause(background)
	defer end(nil)
	if a.within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.within)
		defer cancel()
	}
	if a.answer != nil {
		r.store.acquires(func(ctx context.Context, _ lockfx.Token) (lockfx.Grant, error) { return a.answer(call{r, ctx, end}) })
	}
	if a.prepare != nil {
		a.prepare(call{r, ctx, end})
	}
	o = <-spawn(func() (err error) {
		if byRun {
			return r.Run(ctx, func(context.Context, *lifecycle.Hold) error { got = true; return nil })
		}
		got, err = r.Acquire(ctx)
		return err
	})
	synctest.Wait()
	return got, o
}

// phantoms returns what is wrong after an attempt that must not be granted.
func (a attempt) phantoms(r *rig, byRun, got bool, o outcome) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	wanted := lockfx.StateIdle
	if a.disposed {
		wanted = lockfx.StateReleased
	}
	if got {
		fault("it was granted")
	}
	if o.returned == a.exits || o.panicked != nil {
		fault("returned: %v, panicked: %v", o.returned, o.panicked)
	}
	refusal := len(a.errs) == 0 && !a.exits
	if refusal && byRun {
		var not *lockfx.NotAcquiredError
		if !errors.As(o.err, &not) || not.Self {
			fault("a refused run returned %v", o.err)
		}
	} else if refusal != (o.err == nil) && !a.exits {
		fault("the error is %v", o.err)
	}
	if isSelf := errors.As(o.err, new(*lockfx.NotAcquiredError)); isSelf && !refusal {
		fault("a failure is told as contention: %v", o.err)
	}
	for _, want := range a.errs {
		if !errors.Is(o.err, want) {
			fault("the error %q does not match %q", o.err, want)
		}
	}
	if outage := errors.Is(o.err, lockfx.ErrStore); !a.exits && outage != slices.Contains(a.errs, lockfx.ErrStore) {
		fault("told as an outage: %v: %v", outage, o.err)
	}
	if r.State() != wanted || r.Held() || r.Token() != 0 {
		fault("state %v, held %v, token %v", r.State(), r.Held(), r.Token())
	}
	if n := r.clock.armed.Load(); n != 0 {
		fault("%d timers are armed", n)
	}
	var back []string
	if a.back != 0 {
		back = []string{fmt.Sprintf("release %d", a.back)}
	}
	if got := r.store.calls("release"); !slices.Equal(got, back) {
		fault("given back: %q, want %q", got, back)
	}
	if n := len(r.store.calls("acquire")); (n == 0) != a.unasked || n > 1 {
		fault("the store was asked %d times", n)
	}
	return faults
}

func ways(t *testing.T, rows []attempt, test func(t *testing.T, a attempt, r *rig, byRun bool)) {
	for _, a := range rows {
		for _, byRun := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/run=%v", a.name, byRun), func(t *testing.T) {
				last := func(c *lifecycle.Config) { c.Last = before }
				if a.config == nil {
					a.config = func(*lifecycle.Config) {}
				}
				inBubble(t, func(t *testing.T, r *rig) { test(t, a, r, byRun) }, last, a.config)
			})
		}
	}
}

func TestNothingButAGrantIsOne(t *testing.T) {
	if len(noGrants) < 40 {
		t.Errorf("the matrix has only %d rows", len(noGrants))
	}
	ways(t, noGrants, func(t *testing.T, a attempt, r *rig, byRun bool) {
		last := r.Last()
		got, o := a.try(r, byRun)
		for _, fault := range a.phantoms(r, byRun, got, o) {
			t.Error(fault)
		}
		if r.Last() != last {
			t.Errorf("token %v was accepted", r.Last())
		}
		calls := r.store.calls("")
		time.Sleep(time.Hour)
		r.wantCalls(t, calls...) // nothing goes on by itself

		r.store.acquires(nil)
		r.store.releases(nil)
		r.clock.left.Store(math.MaxInt64)
		r.clock.hasty.Store(false)
		switch ok, err := r.Acquire(background); {
		case a.disposed:
			if ok || !errors.Is(err, lockfx.ErrDisposed) {
				t.Errorf("Acquire after Dispose = %v, %v", ok, err)
			}
		case a.hopeless:
			if ok || err == nil {
				t.Errorf("a hopeless Acquire = %v, %v", ok, err)
			}
		case !ok || err != nil:
			t.Errorf("the next good grant = %v, %v", ok, err)
		default:
			r.wantRelease(t, true)
		}
	})
}

func TestAGrantIsOne(t *testing.T) {
	ways(t, grants, func(t *testing.T, a attempt, r *rig, byRun bool) {
		got, o := a.try(r, byRun)
		if !got || o.err != nil || !o.returned {
			t.Errorf("granted: %v, %+v", got, o)
		}
		if !byRun && (!r.Held() || r.Token() != r.Last() || r.clock.armed.Load() != 2) {
			t.Errorf("held %v, token %v, %d timers", r.Held(), r.Token(), r.clock.armed.Load())
		}
		if len(a.phantoms(r, byRun, got, o)) == 0 {
			t.Error("the check of the matrix passes a grant")
		}
		r.wantRelease(t, !byRun)
	})
}

func TestANilStoreIsRefusedAtOnce(t *testing.T) {
	if m, err := lifecycle.New(lifecycle.Config{Key: key, TTL: ttl}); m != nil || !errors.Is(err, lockfx.ErrConfig) {
		t.Errorf("New = %v, %v", m, err)
	}
}

func TestABusyLockChangesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		busy := func(state lockfx.State) {
			t.Helper()
			token, calls, armed := r.Token(), r.store.calls(""), r.clock.armed.Load()
			if ok, err := r.Acquire(background); ok || !errors.Is(err, lockfx.ErrNotIdle) {
				t.Errorf("%v: Acquire = %v, %v", state, ok, err)
			}
			err := r.Run(background, func(context.Context, *lifecycle.Hold) error {
				t.Errorf("%v: a second body ran", state)
				return nil
			})
			var not *lockfx.NotAcquiredError
			if !errors.As(err, &not) || !not.Self {
				t.Errorf("%v: Run = %v", state, err)
			}
			r.wantState(t, state)
			r.wantCalls(t, calls...)
			if r.Token() != token || r.clock.armed.Load() != armed {
				t.Errorf("%v: token %v -> %v, timers %d -> %d", state, token, r.Token(), armed, r.clock.armed.Load())
			}
		}
		r.store.acquires(func(_ context.Context, next lockfx.Token) (lockfx.Grant, error) {
			busy(lockfx.StateAcquiring)
			return lockfx.Grant{OK: true, Token: next}, nil
		})
		r.store.releases(once(func(context.Context) { busy(lockfx.StateReleasing) }))
		r.acquire(t)
		busy(lockfx.StateHeld)
		r.wantRelease(t, true)

		r.store.releases(once(func(context.Context) { busy(lockfx.StateLost) }))
		r.store.renews(never)
		r.acquire(t)
		time.Sleep(trusted)
		synctest.Wait()
		busy(lockfx.StateLost)
		r.wantRelease(t, true)
	})
}

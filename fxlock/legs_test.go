package fxlock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// What can go wrong in each leg of a run. The empty name is: nothing.
var (
	buildFaults = []string{
		"", "ctor fails", "ctor panics", "ctor exits", "OnStart fails", "OnStart panics", "OnStart exits",
		"lost in ctor", "cancelled in ctor", "disposed in ctor", "lost in OnStart",
	}
	bodyFaults     = []string{"", "fails", "panics", "exits", "lost", "lost and fails", "disposed", "cancelled"}
	teardownFaults = []string{"", "OnStop fails", "OnStop panics", "OnStop exits"}
	releaseFaults  = []string{"", "false", "fails", "panics"}
)

var (
	errCtor    = errors.New("ctor-fault")
	errStart   = errors.New("start-fault")
	errBody    = errors.New("body-fault")
	errStop    = errors.New("stop-fault")
	errRelease = errors.New("release-fault")
	errWhy     = errors.New("why-cancelled")
)

// legs is one run with a fault in any of its legs.
//
// Three values are built for it: c has an OnStop alone, a and b start as well, and
// b needs a needs c. The body takes b; faults of the build happen in b, those of
// the teardown in a.
type legs struct {
	build, body, teardown, release string

	t       *testing.T
	journal journal
	store   *spyStore
	lock    *fxlock.Lock
	cancel  context.CancelCauseFunc
	token   lockfx.Token
}

type (
	legC struct{}
	legA struct{}
	legB struct{}
)

func (l *legs) String() string {
	return fmt.Sprintf("build %q, body %q, teardown %q, release %q", l.build, l.body, l.teardown, l.release)
}

// Every fault of every leg with every fault of every other leg: the lease is given
// back, what has started is stopped in reverse order before that, the body never
// runs when the scope failed, and each error is told, in the order of the legs.
func TestRun_TearsDownAndReleasesWhateverFails(t *testing.T) {
	count := 0
	for _, build := range buildFaults {
		for _, body := range bodyFaults {
			if build != "" && body != "" {
				continue // the body does not run
			}
			for _, teardown := range teardownFaults {
				for _, release := range releaseFaults {
					count++
					l := &legs{build: build, body: body, teardown: teardown, release: release}
					inBubble(t, l.test)
					if t.Failed() {
						t.Fatalf("that was: %v", l)
					}
				}
			}
		}
	}
	if want := (len(buildFaults) + len(bodyFaults) - 1) * len(teardownFaults) * len(releaseFaults); count != want {
		t.Errorf("%d combinations were tried, want %d", count, want)
	}
}

func (l *legs) test(t *testing.T) {
	l.t = t
	l.store = newSpyStore(&l.journal)
	l.store.release = l.failRelease
	l.lock = newLock(t, l.store, fxlock.PerRun(l.newA, l.newB, l.newC))
	ctx, cancel := context.WithCancelCause(t.Context())
	l.cancel = cancel
	defer cancel(nil)

	got := endingOf(func() error { return l.lock.Run(ctx, l.runBody) })

	l.journal.expect(t, l.wantLegs()...)
	l.checkEnding(got)
	if l.lock.Held() || l.lock.State() != lockfx.StateReleased {
		t.Errorf("after the run: held %v, state %v", l.lock.Held(), l.lock.State())
	}
}

func (l *legs) newC(lc fx.Lifecycle) *legC {
	lc.Append(fx.StopHook(func(ctx context.Context) { l.stop(ctx, "c") }))
	return new(legC)
}

func (l *legs) newA(lc fx.Lifecycle, _ *legC) *legA {
	lc.Append(fx.Hook{
		OnStart: func(context.Context) error { l.journal.add("start a"); return nil },
		OnStop: func(ctx context.Context) error {
			l.stop(ctx, "a")
			switch l.teardown {
			case "OnStop fails":
				return errStop
			case "OnStop panics":
				panic(errStop)
			case "OnStop exits":
				runtime.Goexit()
			}
			return nil
		},
	})
	return new(legA)
}

func (l *legs) newB(ctx context.Context, lc fx.Lifecycle, token lockfx.Token, _ *legA) (*legB, error) {
	l.token = token
	if lockfx.TokenFrom(ctx) != token || !l.store.valid(token) {
		l.t.Errorf("the fence of the build is %v, in the context %v", token, lockfx.TokenFrom(ctx))
	}
	lc.Append(fx.Hook{
		OnStart: func(context.Context) error {
			switch l.build {
			case "OnStart fails":
				return errStart
			case "OnStart panics":
				panic(errStart)
			case "OnStart exits":
				runtime.Goexit()
			case "lost in OnStart":
				l.store.takeAway(l.t)
			}
			l.journal.add("start b")
			return nil
		},
		OnStop: func(ctx context.Context) error { l.stop(ctx, "b"); return nil },
	})
	switch l.build {
	case "ctor fails":
		return nil, errCtor
	case "ctor panics":
		panic(errCtor)
	case "ctor exits":
		runtime.Goexit()
	case "lost in ctor":
		l.store.takeAway(l.t)
	case "cancelled in ctor":
		l.cancel(errWhy)
	case "disposed in ctor":
		l.dispose(ctx)
	}
	return new(legB), nil
}

// stop notes that a hook stopped, and checks that it could still write.
func (l *legs) stop(ctx context.Context, name string) {
	l.journal.add("stop %s", name)
	if valid := l.store.valid(l.token); valid == l.lost() {
		l.t.Errorf("stop %s: the fence is valid: %v", name, valid)
	}
	if deadline, ok := ctx.Deadline(); ctx.Err() != nil || !ok || time.Until(deadline) != 15*time.Second {
		l.t.Errorf("stop %s: the context ends at %v (%v) and has the error %v", name, deadline, ok, ctx.Err())
	}
	if lockfx.TokenFrom(ctx) != l.token {
		l.t.Errorf("stop %s: the context carries the token %v", name, lockfx.TokenFrom(ctx))
	}
}

// dispose ends the lock under the run, and waits until the run has heard of it.
func (l *legs) dispose(ctx context.Context) {
	go func() {
		if err := l.lock.Dispose(context.Background()); err != nil {
			l.t.Errorf("dispose: %v", err)
		}
	}()
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, lockfx.ErrDisposed) {
		l.t.Errorf("the cause is %v", cause)
	}
}

func (l *legs) runBody(ctx context.Context, h lockfx.Holder, _ *legB) error {
	l.journal.add("body")
	if !h.Held() || h.Token() != l.token {
		l.t.Errorf("in the body: held %v, token %v", h.Held(), h.Token())
	}
	switch l.body {
	case "fails":
		return errBody
	case "panics":
		panic(errBody)
	case "exits":
		runtime.Goexit()
	case "lost", "lost and fails":
		l.store.takeAway(l.t)
		if cause := context.Cause(ctx); !errors.Is(cause, lockfx.ErrLost) {
			l.t.Errorf("the cause is %v", cause)
		}
		if l.body == "lost and fails" {
			return errBody
		}
	case "disposed":
		l.dispose(ctx)
	case "cancelled":
		l.cancel(errWhy)
	}
	return nil
}

func (l *legs) failRelease() (bool, error) {
	switch l.release {
	case "false":
		return false, nil
	case "fails":
		return false, errRelease
	case "panics":
		panic(errRelease)
	}
	return l.store.MemoryStore.Release(context.Background(), key, l.token)
}

func (l *legs) lost() bool {
	return strings.HasPrefix(l.build, "lost") || strings.HasPrefix(l.body, "lost")
}

func (l *legs) wantLegs() []string {
	want := []string{"acquire"}
	switch {
	case strings.Contains(l.build, "ctor"): // nothing has started
	case l.build == "lost in OnStart":
		want = append(want, "start a", "start b", "stop b", "stop a")
	case strings.HasPrefix(l.build, "OnStart"):
		want = append(want, "start a", "stop a")
	default:
		want = append(want, "start a", "start b", "body", "stop b", "stop a")
	}
	want = append(want, "stop c")
	if !l.lost() { // otherwise the store has told that the lease is not ours
		want = append(want, "release")
	}
	return want
}

func (l *legs) checkEnding(got ending) {
	t := l.t
	stopped := slices.Contains(l.wantLegs(), "stop a")
	switch {
	case strings.HasSuffix(l.build, "exits"), l.body == "exits":
		if !got.exited {
			t.Errorf("the goroutine went on: %+v", got)
		}
		return
	case l.body == "panics":
		if got.panics != any(errBody) {
			t.Errorf("the panic is %v, want the body's own: %+v", got.panics, got)
		}
		return
	case got.exited, got.panics != nil:
		t.Errorf("ended with %+v", got)
		return
	}

	var want []error
	switch l.build {
	case "ctor fails", "ctor panics":
		want = append(want, errCtor)
	case "OnStart fails":
		want = append(want, errStart)
	case "OnStart panics":
		want = append(want, errText(errStart.Error()))
	case "lost in ctor", "lost in OnStart":
		want = append(want, lockfx.ErrLost)
	case "cancelled in ctor":
		want = append(want, errWhy)
	case "disposed in ctor":
		want = append(want, lockfx.ErrDisposed)
	}
	if strings.HasSuffix(l.body, "fails") {
		want = append(want, errBody)
	}
	switch {
	case !stopped:
	case l.teardown == "OnStop fails":
		want = append(want, errStop)
	case l.teardown == "OnStop panics":
		want = append(want, errText(errStop.Error()))
	case l.teardown == "OnStop exits":
		want = append(want, errText("OnStop hook: ended its goroutine"))
	}
	switch {
	case strings.HasPrefix(l.body, "lost"):
		want = append(want, lockfx.ErrLost)
	case l.lost():
	case l.release == "false":
		want = append(want, lockfx.ErrLost)
	case l.release == "fails", l.release == "panics":
		want = append(want, errRelease)
	}
	l.checkErrors(got.err, want)
}

// errText stands for an error that says the text without wrapping it.
type errText string

func (e errText) Error() string { return string(e) }

func (l *legs) checkErrors(err error, want []error) {
	t := l.t
	if len(want) == 0 {
		noError(t, err)
		return
	}
	if len(want) == 1 && identical(want[0], errBody) && !identical(err, errBody) {
		t.Errorf("the error is %v, want the body's own and nothing else", err)
	}
	var scope *lockfx.ScopeError
	if l.build != "" && (!errors.As(err, &scope) || scope.Key != key || scope.Op == "") {
		t.Errorf("%v is no ScopeError of the key", err)
	}
	var lostErr *lockfx.LostError
	if l.lost() && (!errors.As(err, &lostErr) || lostErr.Token != l.token || lostErr.Reason != lockfx.ReasonHeartbeatFailed) {
		t.Errorf("%v has no LostError of the run", err)
	}
	after := 0
	for _, w := range want {
		if _, text := any(w).(errText); !text && !errors.Is(err, w) {
			t.Errorf("%v does not match %v", err, w)
			continue
		}
		at := strings.Index(err.Error()[after:], w.Error())
		if at < 0 {
			t.Errorf("%q does not say %q behind what went before it", err, w)
			continue
		}
		after += at
	}
}

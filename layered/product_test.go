package layered

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/layered/internal/flock"
)

// The product of all scopes, timeouts and conditions, against a model that says in
// its own words what has to come of each.

type condition struct {
	kind  string // "free", "contended", "failing" or "unavailable" to everybody
	layer Layer
}

type timeoutCase struct {
	name    string
	options func(contended bool) []Option
	once    bool
	fails   bool // with an error
	none    bool
}

// A contended layer makes the time run out, so it may be short; a free one must not
// see it run out, so it must be long.
func limit(contended bool) time.Duration {
	if contended {
		return 2 * time.Millisecond
	}
	return time.Hour
}

var timeoutCases = []timeoutCase{
	{"none", func(bool) []Option { return nil }, false, false, true},
	{"duration", func(c bool) []Option { return []Option{WithTimeout(limit(c))} }, false, true, false},
	{"non-failing", func(c bool) []Option { return []Option{WithTimeoutResult(limit(c))} }, false, false, false},
	{"zero", func(bool) []Option { return []Option{WithTimeout(0)} }, true, true, false},
}

// expected is what the model says.
type expected struct {
	held     [layers]bool    // at the end of acquiring
	outcomes [layers]Outcome // in the result
	blocked  bool            // it waits at layer end, until that is freed, and then runs
	end      Layer           // where it waited or stopped
	stop     string          // "", "timeout", "unavailable" or "failed"
}

func model(modes [layers]Mode, tm timeoutCase, cond condition) (e expected) {
	for l, m := range modes {
		if m != Off {
			e.outcomes[l] = OutcomeOn
		}
	}
	for l := range Layer(layers) {
		here := cond.layer == l
		switch {
		case modes[l] == Off:
		case l == LayerPoll && modes[l] == Auto && e.held[LayerFlock]:
			e.outcomes[l] = OutcomeSkipped
		case cond.kind == "unavailable" && here && modes[l] == Auto:
			e.outcomes[l] = OutcomeSkipped
		case (cond.kind == "failing" || cond.kind == "unavailable") && here:
			e.end, e.stop = l, "failed"
			return e
		case cond.kind == "contended" && here && l == LayerPoll && e.held[LayerFlock]:
			e.end, e.stop = l, "unavailable"
			return e
		case cond.kind == "contended" && here && !tm.none:
			e.end, e.stop = l, "timeout"
			return e
		case cond.kind == "contended" && here:
			e.blocked, e.end = true, l
			e.held[l] = true
		default:
			e.held[l] = true
		}
	}
	return e
}

func TestProductOfScopesTimeoutsAndConditions(t *testing.T) {
	n := 0
	for _, memory := range []Mode{Off, On} {
		for _, worker := range []Mode{Off, On, Auto} {
			for _, flock := range []Mode{Off, On, Auto} {
				for _, poll := range []Mode{Off, On, Auto} {
					modes := [layers]Mode{memory, worker, flock, poll}
					for _, cond := range conditionsFor(modes) {
						for _, tm := range timeoutCases {
							n++
							t.Run(fmt.Sprint(modes, " ", tm.name, " ", cond.kind, " ", cond.layer), func(t *testing.T) {
								runCase(t, modes, tm, cond)
							})
						}
					}
				}
			}
		}
	}
	if n < 1000 {
		t.Errorf("%d cases, want 1000", n)
	}
	files.CloseIdle()
}

func conditionsFor(modes [layers]Mode) []condition {
	conds := []condition{{kind: "free"}}
	for l, m := range modes {
		if m == Off {
			continue
		}
		conds = append(conds, condition{"contended", Layer(l)})
		if Layer(l) == LayerFlock || Layer(l) == LayerPoll {
			conds = append(conds, condition{"failing", Layer(l)})
		}
		if Layer(l) == LayerFlock {
			conds = append(conds, condition{"unavailable", LayerFlock})
		}
	}
	return conds
}

func runCase(t *testing.T, modes [layers]Mode, tm timeoutCase, cond condition) {
	locker, err := New(WithDir(t.TempDir()))
	must(t, err)
	opts := append(tm.options(cond.kind == "contended"),
		WithLocker(locker), WithNamespace("product"), WithKey("k"), WithScope(scopeOf(modes)))
	path, err := LockFile(opts...)
	must(t, err)
	p := probe{t, locker, path, name{"product", "k"}}
	want := model(modes, tm, cond)

	free := func() {}
	switch cond.kind {
	case "contended":
		free = p.contend(cond.layer)
	case "failing":
		p.breakLayer(cond.layer)
	case "unavailable":
		useFiles(t, (&oddFile{errno: syscall.ENOLCK}).open)
	}

	var freed atomic.Bool
	if want.blocked {
		go func() {
			eventually(t, "the layers before are held", func() bool {
				for l := range want.end {
					if want.held[l] && !p.held(l) {
						return false
					}
				}
				return true
			})
			freed.Store(true)
			free()
		}()
	}

	var seen []Call[string]
	res, err := WithLock(t.Context(), "in",
		func(_ context.Context, call Call[string]) (int, error) {
			seen = append(seen, call)
			for l := range Layer(layers) {
				others := cond == condition{"contended", l} && !want.blocked
				if held := p.held(l); held != (want.held[l] || others) {
					t.Errorf("in the action, %v is held: %v", l, held)
				}
			}
			return 7, nil
		},
		append(opts, WithPredicate(func(_ context.Context, call Call[string]) (bool, error) {
			seen = append(seen, call)
			if call.State == StatePredicateAfter && want.blocked && !freed.Load() {
				t.Error("it did not wait")
			}
			return true, nil
		}))...)

	if !want.blocked {
		for l := range Layer(layers) {
			if contended := cond == (condition{"contended", l}); p.held(l) != contended && cond != (condition{"failing", l}) {
				t.Errorf("at the end, %v is held: %v", l, p.held(l))
			}
		}
		free()
	}
	checkResult(t, want, tm, res, err)
	checkInfo(t, modes, path, want, res.Lock)
	checkCalls(t, modes, want, seen, res.Lock)
}

func checkResult(t *testing.T, want expected, tm timeoutCase, res Result[string, int], err error) {
	t.Helper()
	state, value := StateExecuted, 7
	if want.stop != "" {
		state, value = StatePredicateBefore, 0
	}
	var layer *LayerError
	var timeout *TimeoutError
	ok := false
	switch {
	case want.stop == "":
		ok = err == nil
	case want.stop == "timeout" && tm.fails:
		ok = errors.Is(err, lockfx.ErrTimeout) && errors.As(err, &timeout) &&
			*timeout == TimeoutError{want.end, "k", res.Lock.Waited} &&
			(tm.once || timeout.Waited >= limit(true))
	case want.stop == "timeout":
		state = StateTimeout
		ok = err == nil && res.Lock.Waited >= limit(true)
	case want.stop == "unavailable":
		ok = errors.Is(err, ErrLockUnavailable) && errors.As(err, &layer) && layer.Layer == LayerPoll
	case want.stop == "failed":
		ok = errors.As(err, &layer) && layer.Layer == want.end && layer.Op == "acquire" && !errors.Is(err, lockfx.ErrTimeout)
	}
	if !ok || res.State != state || res.Value != value || res.Input != "in" {
		t.Errorf("result %+v, error %v; want %+v", res, err, want)
	}
}

func checkInfo(t *testing.T, modes [layers]Mode, path string, want expected, got Info) {
	t.Helper()
	info := Info{Namespace: "product", Key: "k", Waited: got.Waited}
	if modes[LayerFlock] != Off || modes[LayerPoll] != Off {
		info.File = path
	}
	for l := range Layer(layers) {
		li := LayerInfo{Outcome: want.outcomes[l]}
		if modes[l] != Off {
			li.Backend = backends[l]
		}
		if li.Outcome == OutcomeSkipped {
			li.Reason = got.Layer(l).Reason
			if (l == LayerPoll) != (li.Reason == "flock is held") || li.Reason == "" {
				t.Errorf("%v was skipped, since %q", l, li.Reason)
			}
			if l == LayerFlock {
				li.Errno = syscall.ENOLCK
			}
		}
		*info.layer(l) = li
	}
	if got != info {
		t.Errorf("info %+v\nwant %+v", got, info)
	}
}

func checkCalls(t *testing.T, modes [layers]Mode, want expected, seen []Call[string], final Info) {
	t.Helper()
	before := Info{Namespace: final.Namespace, Key: final.Key, File: final.File}
	for l, m := range modes {
		if m != Off {
			*before.layer(Layer(l)) = LayerInfo{Outcome: OutcomeOn, Backend: backends[l]}
		}
	}
	calls := []Call[string]{{"in", StatePredicateBefore, before}}
	if want.stop == "" {
		calls = append(calls, Call[string]{"in", StatePredicateAfter, final}, Call[string]{"in", StateExecuted, final})
	}
	if !slices.Equal(seen, calls) {
		t.Errorf("callbacks saw %+v\nwant %+v", seen, calls)
	}
}

// probe looks at the layers of one lock from outside of WithLock.
type probe struct {
	t      *testing.T
	locker *Locker
	path   string
	name   name
}

func (p probe) held(l Layer) bool {
	switch l {
	case LayerMemory:
		if free := p.locker.memory.TryLock(p.name); free {
			p.locker.memory.Unlock(p.name)
			return false
		}
		return true
	case LayerWorker:
		if free := workers.TryLock(p.name); free {
			workers.Unlock(p.name)
			return false
		}
		return true
	case LayerFlock:
		if _, err := os.Lstat(p.path); err != nil {
			return false
		}
		f, err := flock.Open(p.path)
		if err != nil {
			return false
		}
		defer f.Close() //nolint:errcheck // nothing is lost with it
		free, err := f.TryLock()
		return err == nil && !free
	default:
		info, err := os.Lstat(p.path + pollSuffix)
		return err == nil && info.IsDir()
	}
}

// contend makes another hold the layer, until free.
func (p probe) contend(l Layer) (free func()) {
	switch l {
	case LayerMemory:
		must(p.t, p.locker.memory.Lock(p.t.Context(), p.name))
		return func() { p.locker.memory.Unlock(p.name) }
	case LayerWorker:
		must(p.t, workers.Lock(p.t.Context(), p.name))
		return func() { workers.Unlock(p.name) }
	case LayerFlock:
		f, err := flock.Open(p.path)
		must(p.t, err)
		_, err = f.TryLock()
		must(p.t, err)
		return func() {
			if err := f.Close(); err != nil {
				p.t.Error(err)
			}
		}
	default:
		must(p.t, os.Mkdir(p.path+pollSuffix, 0o700))
		return func() {
			if err := os.Remove(p.path + pollSuffix); err != nil {
				p.t.Error(err)
			}
		}
	}
}

// breakLayer makes the layer fail for a reason that is no contention.
func (p probe) breakLayer(l Layer) {
	must(p.t, os.MkdirAll(filepath.Dir(p.path), 0o700))
	if l == LayerFlock {
		must(p.t, os.Mkdir(p.path, 0o700))
	} else {
		must(p.t, os.WriteFile(p.path+pollSuffix, nil, 0o600))
	}
}

package pace

import (
	"context"
	"sync"
	"time"
)

// Gap is how long a process leaves a path alone after its turn: in that time all others
// look.
const Gap = Look * 4 / 3

// Turn is a row of holds of a path by this process, each of which began within Gap of the
// end of the one before. Without turns, whoever asks again the moment it has given a path
// back would leave the others no time to look. The zero Turn is that of a path that this
// process has not had.
type Turn struct{ since, until time.Duration }

var began = time.Now()

// now costs half of what time.Now does.
func now() time.Duration { return time.Since(began) }

func (t Turn) over(now time.Duration) bool { return (now - t.until).Abs() >= Gap }

// Give leaves the path alone for a moment if the turn has lasted for longest. It returns
// the cause of ctx's end if that came first.
func (t Turn) Give(ctx context.Context, longest time.Duration) error {
	if t.until-t.since < longest {
		return nil
	}
	if now := now(); !t.over(now) {
		return Sleep(ctx, t.until+Gap-now)
	}
	return nil
}

// Begin returns the turn of a hold that begins now, after t. met says that another has
// had the path in between.
func (t Turn) Begin(met bool) Turn {
	now := now()
	if met || t.over(now) {
		t.since = now
	}
	return t
}

// End returns the turn when the hold has ended.
func (t Turn) End() Turn { return Turn{t.since, now()} }

// Turns are the turns of many paths. The zero Turns is ready. It is safe for concurrent
// use.
type Turns struct {
	mu    sync.Mutex
	last  map[string]Turn // guarded by mu
	limit int             // guarded by mu: of last, before what is over is forgotten
}

// Of returns the last turn of path.
func (ts *Turns) Of(path string) Turn {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.last[path]
}

// Keep keeps the turn of path, until it is over.
func (ts *Turns) Keep(path string, t Turn) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.last == nil {
		ts.last = make(map[string]Turn)
	}
	ts.last[path] = t
	if len(ts.last) <= ts.limit {
		return
	}
	now := now()
	for p, t := range ts.last {
		if t.over(now) {
			delete(ts.last, p)
		}
	}
	ts.limit = max(64, 2*len(ts.last))
}

// Len returns how many turns are kept.
func (ts *Turns) Len() int {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return len(ts.last)
}

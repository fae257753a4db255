package lifecycle_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	key  = "nightly"
	ttl  = 30 * time.Second
	beat = ttl / 3
)

// trusted is how long a lease is, as its holder sees it.
var trusted = ttl - lifecycle.Margin(ttl)

var background = context.Background()

// An answer is how a store renews or releases.
type answer func(ctx context.Context, token lockfx.Token) (bool, error)

// A granting is how a store answers to Acquire; next is the token that would rise.
type granting func(ctx context.Context, next lockfx.Token) (lockfx.Grant, error)

// script is a store that answers as a test says. What the test leaves out goes
// well: tokens rise, and every lease is renewed and released.
type script struct {
	mu      sync.Mutex
	acquire granting
	renew   answer
	release answer
	last    lockfx.Token
	lines   []string // the calls, in the order of their beginnings
}

var _ lockfx.Store = (*script)(nil)

func (s *script) acquires(g granting) { s.mu.Lock(); defer s.mu.Unlock(); s.acquire = g }
func (s *script) renews(a answer)     { s.mu.Lock(); defer s.mu.Unlock(); s.renew = a }
func (s *script) releases(a answer)   { s.mu.Lock(); defer s.mu.Unlock(); s.release = a }

func (s *script) Acquire(ctx context.Context, _ string, _ time.Duration) (lockfx.Grant, error) {
	s.note("acquire")
	s.mu.Lock()
	s.last++
	next, acquire := s.last, s.acquire
	s.mu.Unlock()
	if acquire != nil {
		return acquire(ctx, next)
	}
	return lockfx.Grant{OK: true, Token: next}, ctx.Err()
}

func (s *script) Renew(ctx context.Context, _ string, token lockfx.Token, _ time.Duration) (bool, error) {
	s.note("renew %d", token)
	s.mu.Lock()
	renew := s.renew
	s.mu.Unlock()
	if renew != nil {
		return renew(ctx, token)
	}
	return true, ctx.Err()
}

func (s *script) Release(ctx context.Context, _ string, token lockfx.Token) (bool, error) {
	s.note("release %d", token)
	s.mu.Lock()
	release := s.release
	s.mu.Unlock()
	if release != nil {
		return release(ctx, token)
	}
	return true, ctx.Err()
}

// note adds a line of the test's own among the calls.
func (s *script) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// calls returns the calls that begin with prefix.
func (s *script) calls(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []string
	for _, line := range s.lines {
		if strings.HasPrefix(line, prefix) {
			found = append(found, line)
		}
	}
	return found
}

// never is an answer that does not come before the end of the call.
func never(ctx context.Context, _ lockfx.Token) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

// always is an answer that is there at once.
func always(ok bool, err error) answer {
	return func(context.Context, lockfx.Token) (bool, error) { return ok, err }
}

// once is what do does, and then a good answer.
func once(do func(ctx context.Context)) answer {
	return func(ctx context.Context, _ lockfx.Token) (bool, error) {
		do(ctx)
		return true, nil
	}
}

// diary records what callbacks hear.
type diary struct {
	mu     sync.Mutex
	events []lockfx.Event
	losses []lockfx.Reason // what OnLost heard
}

func (d *diary) observe(e lockfx.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, e)
}

func (d *diary) onLost(r lockfx.Reason) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.losses = append(d.losses, r)
}

func (d *diary) all() []lockfx.Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.events)
}

func (d *diary) lost() []lockfx.Reason {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.losses)
}

// kinds returns the events in order, such as "acquired, released".
func (d *diary) kinds() string {
	var kinds []string
	for _, e := range d.all() {
		kinds = append(kinds, e.Kind.String())
	}
	return strings.Join(kinds, ", ")
}

// rig is a machine with everything around it in the hands of a test.
type rig struct {
	*lifecycle.Machine
	store *script
	clock *clock
	seen  *diary
}

func newRig(t testing.TB, changes ...func(*lifecycle.Config)) *rig {
	t.Helper()
	r := &rig{store: &script{}, clock: newClock(), seen: &diary{}}
	cfg := lifecycle.Config{
		Key: key, Store: r.store, TTL: ttl, Clock: r.clock,
		OnLost: r.seen.onLost, Observers: []func(lockfx.Event){r.seen.observe},
	}
	for _, change := range changes {
		change(&cfg)
	}
	r.store.last = cfg.Last
	m, err := lifecycle.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.Machine = m
	return r
}

func renewRetry(c *lifecycle.Config) { c.RenewRetry = true }

// inBubble runs test with a rig in a bubble. In the end nothing may be armed.
func inBubble(t *testing.T, test func(t *testing.T, r *rig), changes ...func(*lifecycle.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, changes...)
		test(t, r)
		synctest.Wait()
		if n := r.clock.armed.Load(); n != 0 {
			t.Errorf("%d timers are left armed", n)
		}
	})
}

// acquire acquires the lock, which must be free.
func (r *rig) acquire(t testing.TB) {
	t.Helper()
	if ok, err := r.Acquire(background); !ok || err != nil || !r.Held() {
		t.Fatalf("Acquire = %v, %v, and Held is %v", ok, err, r.Held())
	}
}

func (r *rig) wantRelease(t testing.TB, want bool) {
	t.Helper()
	if ok, err := r.Release(background); ok != want || err != nil {
		t.Errorf("Release = %v, %v; want %v", ok, err, want)
	}
}

func (r *rig) dispose(t testing.TB) {
	t.Helper()
	if err := r.Dispose(background); err != nil {
		t.Errorf("Dispose: %v", err)
	}
}

func (r *rig) wantState(t testing.TB, want lockfx.State) {
	t.Helper()
	if got := r.State(); got != want {
		t.Errorf("the lock is %v, want %v", got, want)
	}
}

func (r *rig) wantCalls(t testing.TB, want ...string) {
	t.Helper()
	if got := r.store.calls(""); !slices.Equal(got, want) {
		t.Errorf("calls:\n got %q\nwant %q", got, want)
	}
}

func (r *rig) wantEvents(t testing.TB, want string) {
	t.Helper()
	synctest.Wait()
	if got := r.seen.kinds(); got != want {
		t.Errorf("events:\n got %s\nwant %s", got, want)
	}
}

// wantLosses checks what OnLost heard.
func (r *rig) wantLosses(t testing.TB, want ...lockfx.Reason) {
	t.Helper()
	synctest.Wait()
	if got := r.seen.lost(); !slices.Equal(got, want) {
		t.Errorf("OnLost heard %v, want %v", got, want)
	}
}

// outcome is how a call ended.
type outcome struct {
	returned bool
	panicked any
	err      error
}

// spawn calls f in a goroutine of its own, which f may end.
func spawn(f func() error) <-chan outcome {
	ended := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			o.panicked = recover()
			ended <- o
		}()
		o.err = f()
		o.returned = true
	}()
	return ended
}

package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockfx/lockfx"
)

// env is what a check works with. Its methods state what is expected, and break
// the promise if it is not so.
type env struct {
	*Harness
	ctx context.Context

	leases leases
	slept  atomic.Int64   // in the hands of Harness.Sleep
	calls  sync.WaitGroup // of the store whose answers may not be waited for any more
}

// key is the key of most cases. Each case has a store of its own.
const key = "storetest key"

func (e *env) fail(format string, args ...any) {
	panic(broken{fmt.Errorf(format, args...)})
}

func (e *env) noError(op string, err error) {
	if err == nil {
		return
	}
	if over := e.ctx.Err(); over != nil {
		err = fmt.Errorf("%w: %w", context.Cause(e.ctx), err)
	}
	e.fail("%s: unexpected error: %w", op, err)
}

// acquire asks for a lease of the harness's ttl and must not meet an error.
func (e *env) acquire(s lockfx.Store, key string) lockfx.Grant { return e.acquireFor(s, key, e.TTL) }

func (e *env) acquireFor(s lockfx.Store, key string, ttl time.Duration) lockfx.Grant {
	asked := time.Now()
	g, err := s.Acquire(e.ctx, key, ttl)
	e.noError("acquire", err)
	if g.OK {
		e.leases.note(key, g.Token, asked.Add(ttl))
	}
	return g
}

// granted acquires and must be granted.
func (e *env) granted(s lockfx.Store, key string) lockfx.Token {
	return e.grantedFor(s, key, e.TTL)
}

func (e *env) grantedFor(s lockfx.Store, key string, ttl time.Duration) lockfx.Token {
	g := e.acquireFor(s, key, ttl)
	if !g.OK {
		e.fail("acquire %q: refused (held by %q, retry after %v), want a grant", key, g.HeldBy, g.RetryAfter)
	}
	if !g.Token.Valid() {
		e.fail("acquire %q: granted with token %d, want at least 1", key, g.Token)
	}
	return g.Token
}

// refused acquires and must be refused.
func (e *env) refused(s lockfx.Store, key string) lockfx.Grant {
	end := e.leases.lastEnd(key)
	g := e.acquire(s, key)
	if g.OK {
		inTime(end)
		e.fail("acquire %q: granted with token %d, want a refusal", key, g.Token)
	}
	return g
}

func (e *env) renew(s lockfx.Store, key string, token lockfx.Token, ttl time.Duration, want bool) {
	asked := time.Now()
	ok, err := s.Renew(e.ctx, key, token, ttl)
	e.noError("renew", err)
	if ok {
		e.leases.note(key, token, asked.Add(ttl))
	}
	if ok != want {
		if want {
			inTime(e.leases.end(key, token))
		}
		e.fail("renew %q with token %d: %v, want %v", key, token, ok, want)
	}
}

func (e *env) release(s lockfx.Store, key string, token lockfx.Token, want bool) {
	ok, err := s.Release(e.ctx, key, token)
	e.noError("release", err)
	if ok != want {
		if want {
			inTime(e.leases.end(key, token))
		}
		e.fail("release %q with token %d: %v, want %v", key, token, ok, want)
	}
}

// notTrue calls an operation that may fail or return false, but not succeed.
func (e *env) notTrue(op string, ok bool, err error) {
	if ok && err == nil {
		e.fail("%s: true, want false or an error", op)
	}
}

func (e *env) rises(from, to lockfx.Token) {
	if to <= from {
		e.fail("token %d after %d, want a greater one", to, from)
	}
}

// sleep waits for d, or until the time of the case is over.
func (e *env) sleep(d time.Duration) {
	if e.Sleep != nil {
		e.slept.Add(int64(d))
		e.Sleep(d)
		return
	}
	select {
	case <-time.After(d):
	case <-e.ctx.Done():
		e.fail("wait for %v: %w", d, context.Cause(e.ctx))
	}
}

// latest is the present, or later: [Harness.Sleep] may move a clock of the store's own.
func (e *env) latest() time.Time { return time.Now().Add(time.Duration(e.slept.Load())) }

// outlive sleeps until a lease of ttl that was asked for just now has expired.
func (e *env) outlive(ttl time.Duration) { e.sleep(ttl + e.Late + e.TTL/10) }

// barelyOutlive does so too, but for the difference of two clocks' rates.
func (e *env) barelyOutlive(ttl time.Duration) { e.sleep(ttl + e.Late + e.TTL/200) }

// open calls an opener of the harness.
func (e *env) open(open func() (lockfx.Store, error)) lockfx.Store {
	s, err := open()
	e.noError("open a handle", err)
	return s
}

// freeWithin acquires key, again and again if need be, until granted; it must
// become free within d.
func (e *env) freeWithin(s lockfx.Store, d time.Duration) lockfx.Token {
	const step = 20
	for range step {
		if g := e.acquire(s, key); g.OK {
			return g.Token
		}
		e.sleep(d / step)
	}
	return e.granted(s, key)
}

// each runs f n times at once and waits. What f breaks, or a store's panic, breaks the
// promise, also if another one of them was too slow to show anything.
func (e *env) each(n int, f func(i int)) {
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			defer seen(&errs[i])
			errs[i] = errExited
			f(i)
			errs[i] = nil
		})
	}
	wg.Wait()
	var found error
	for _, err := range errs {
		if err != nil && (found == nil || errors.Is(found, errTooSlow)) {
			found = err
		}
	}
	if found != nil {
		panic(broken{found})
	}
}

// leases has until when, at least, the leases of a case last.
type leases struct {
	mu   sync.Mutex // guards what follows
	last map[string]lockfx.Token
	ends map[lease]time.Time
}

type lease struct {
	key   string
	token lockfx.Token
}

func (l *leases) note(key string, token lockfx.Token, end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends == nil {
		l.last, l.ends = map[string]lockfx.Token{}, map[lease]time.Time{}
	}
	l.last[key], l.ends[lease{key, token}] = token, end
}

// end returns the end of a lease, or the zero time if it was not noted.
func (l *leases) end(key string, token lockfx.Token) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ends[lease{key, token}]
}

// lastEnd returns the end of the lease on key that was noted last.
func (l *leases) lastEnd(key string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ends[lease{key, l.last[key]}]
}

// inTime ends the attempt if a lease that has gone may have expired by now.
func inTime(end time.Time) {
	if !end.IsZero() && !time.Now().Before(end) {
		panic(broken{errTooSlow})
	}
}

var errTooSlow = errors.New("the machine took longer than a lease lasts, so nothing is shown: give the harness a longer TTL")

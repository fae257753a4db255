package storetest

import (
	"context"
	"time"

	"github.com/lockfx/lockfx"
)

func isWatcher(h *Harness) bool { _, ok := h.Store.(lockfx.Watcher); return ok }

// watch watches key and must not meet an error.
func (e *env) watch(key string) (<-chan struct{}, func()) {
	freed, stop, err := e.Store.(lockfx.Watcher).Watch(e.ctx, key)
	e.noError("watch", err)
	return freed, stop
}

// wakes waits for a signal for as long as a slow engine may take, which is well
// below the lease of those cases.
func (e *env) wakes(freed <-chan struct{}, what string) {
	if !e.signalled(freed, e.patience()) {
		e.fail("no signal after %s", what)
	}
}

// signalled reports whether there is a signal within so long. A watch that is lost is none.
func (e *env) signalled(freed <-chan struct{}, within time.Duration) bool {
	signal, open := e.noticed(freed, within)
	if signal && !open {
		e.fail("the watch is lost: its channel is closed, though nothing happened to the engine")
	}
	return signal
}

func (e *env) patience() time.Duration { return max(10*e.TTL, 5*time.Second) }

// longLease does not expire while a case waits for a signal.
func (e *env) longLease() time.Duration { return 10 * e.patience() }

// noticed reports whether there is a signal within so long, or the end of the watch.
func (e *env) noticed(freed <-chan struct{}, within time.Duration) (signal, open bool) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case _, open := <-freed:
		return true, open
	case <-timer.C:
	case <-e.ctx.Done():
	}
	return false, true
}

var watching = []Promise{
	{Name: "watch/release-wakes", Text: "A release wakes those who watch the key.", needs: isWatcher, check: func(e *env) {
		token := e.grantedFor(e.Store, key, e.longLease())
		freed, stop := e.watch(key)
		defer stop()
		e.release(e.Store, key, token, true)
		e.wakes(freed, "a release")
	}},
	{Name: "watch/every-waiter-is-woken", Text: "A release wakes everybody who watches the key.", needs: isWatcher, check: func(e *env) {
		token := e.grantedFor(e.Store, key, e.longLease())
		var all []<-chan struct{}
		for range 20 {
			freed, stop := e.watch(key)
			defer stop()
			all = append(all, freed)
		}
		e.release(e.Store, key, token, true)
		for _, freed := range all {
			e.wakes(freed, "a release")
		}
	}},
	{Name: "watch/signals-do-not-pile-up", Text: "The channel holds one signal: a waiter that looks away finds one, and the store never blocks on it.", needs: isWatcher, check: func(e *env) {
		freed, stop := e.watch(key)
		defer stop()
		if cap(freed) != 1 {
			e.fail("the channel has capacity %d, want 1", cap(freed))
		}
		for range 5 {
			e.release(e.Store, key, e.grantedFor(e.Store, key, e.longLease()), true)
		}
		e.wakes(freed, "five releases")
	}},
	{Name: "watch/each-hold-wakes-again", Text: "A watch goes on: it wakes at every release.", needs: isWatcher, check: func(e *env) {
		freed, stop := e.watch(key)
		defer stop()
		for range 10 {
			token := e.grantedFor(e.Store, key, e.longLease())
			for e.signalled(freed, 0) { // what came late from the hold before
				continue
			}
			e.release(e.Store, key, token, true)
			e.wakes(freed, "a release")
		}
	}},
	{Name: "watch/stop-is-idempotent", Text: "A watch can be stopped twice, and others go on.", needs: isWatcher, check: func(e *env) {
		token := e.grantedFor(e.Store, key, e.longLease())
		_, stop := e.watch(key)
		freed, stopOther := e.watch(key)
		defer stopOther()
		stop()
		stop()
		e.release(e.Store, key, token, true)
		e.wakes(freed, "a release, with another watch stopped")
	}},
	{Name: "watch/a-free-key-can-be-watched", Text: "A key that is free, or was never seen, can be watched.", needs: isWatcher, check: func(e *env) {
		freed, stop := e.watch("never seen")
		defer stop()
		e.release(e.Store, "never seen", e.grantedFor(e.Store, "never seen", e.longLease()), true)
		e.wakes(freed, "a release")
	}},
	{Name: "watch/other-keys-are-watched-apart", Text: "Watching many keys, each release wakes the watch of its key.", needs: isWatcher, check: func(e *env) {
		ks := []string{"a", "b", "a:b", "A", "a*"}
		var all []<-chan struct{}
		for _, k := range ks {
			freed, stop := e.watch(k)
			defer stop()
			all = append(all, freed)
		}
		for i, k := range ks {
			e.release(e.Store, k, e.grantedFor(e.Store, k, e.longLease()), true)
			e.wakes(all[i], "a release of "+k)
		}
	}},
	{Name: "watch/refuses-a-bad-key", Text: "A bad key is refused with an error that names the rule.", needs: isWatcher, check: func(e *env) {
		_, stop, err := e.Store.(lockfx.Watcher).Watch(e.ctx, "")
		if stop != nil {
			stop()
		}
		e.configFault("watch", false, err)
	}},
	{Name: "watch/dead-context", Text: "With a dead context no watch is opened.", needs: isWatcher, check: func(e *env) {
		for _, dead := range e.deadContexts() {
			_, stop, err := e.Store.(lockfx.Watcher).Watch(dead, key)
			if stop != nil {
				stop()
			}
			if err == nil {
				e.fail("watch with a dead context: no error")
			}
		}
	}},
	{Name: "watch/outlives-its-call", Text: "The context of Watch bounds the call, not the watch.", needs: isWatcher, check: func(e *env) {
		ctx, cancel := context.WithCancel(e.ctx)
		freed, stop, err := e.Store.(lockfx.Watcher).Watch(ctx, key)
		cancel()
		e.noError("watch", err)
		defer stop()
		e.sleep(e.TTL / 2) // a watch that is bound to the context has heard of its end by then
		e.release(e.Store, key, e.grantedFor(e.Store, key, e.longLease()), true)
		e.wakes(freed, "a release")
		e.signalled(freed, 0) // a watch that is lost is told
	}},
	{Name: "watch/no-wake-up-is-missed", Text: "Whoever watches, then is refused, is woken by the release, however close the race.", needs: isWatcher, check: func(e *env) {
		e.noMissedWakeUp(e.races(10_000))
	}},
	{
		Name: "watch/other-handles-wake", Text: "A release through one handle wakes a watch on another.",
		needs: func(h *Harness) bool { return isWatcher(h) && h.Second != nil },
		check: func(e *env) {
			other := e.open(e.Second)
			token := e.grantedFor(other, key, e.longLease())
			freed, stop := e.watch(key)
			defer stop()
			e.release(other, key, token, true)
			e.wakes(freed, "a release through another handle")
		},
	},
}

// races is how often a race is run: n times, or less often where an operation goes to a
// server.
func (e *env) races(n int) int {
	if e.Wrap != nil {
		return n
	}
	return min(n, 300)
}

// noMissedWakeUp runs the order that a waiter keeps (watch, acquire, wait) against
// a release that comes at any moment of it.
func (e *env) noMissedWakeUp(n int) {
	for i := range n {
		token := e.grantedFor(e.Store, key, e.longLease())
		e.each(2, func(who int) {
			if who == 0 {
				e.release(e.Store, key, token, true)
				return
			}
			freed, stop := e.watch(key)
			defer stop()
			for {
				if g := e.acquire(e.Store, key); g.OK {
					e.release(e.Store, key, g.Token, true)
					return
				}
				if !e.signalled(freed, e.patience()) {
					e.fail("race %d: refused, and then never woken", i+1)
				}
			}
		})
	}
}

package storetest_test

import (
	"time"

	"github.com/lockfx/lockfx"
)

// leaseOf returns the unexpired lease on key if it carries token. h.mu is held.
func (h handle) leaseOf(key string, token lockfx.Token) (record, bool) {
	r, ok := h.records[key]
	return r, ok && r.token == token && h.now().Before(r.expires)
}

func (h handle) renew(request int, key, label string, token lockfx.Token, ttl time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.did[request] {
		return true
	}
	r, ok := h.leaseOf(key, token)
	old, known := h.records[key]
	switch {
	case h.has("a renewal does not look at the token"):
		r, ok = old, known && h.now().Before(old.expires)
	case h.has("a renewal does not look at the expiry"):
		r, ok = old, known && old.token == token
	case h.has("a renewal revives what expired just now"):
		r, ok = old, known && old.token == token && h.now().Before(old.expires.Add(5*time.Millisecond))
	case h.has("a renewal looks, and then prolongs"):
		r, ok = old, known
	case h.has("a renewal looks, and then writes its lease"):
		if !ok {
			r, ok = record{token: token}, true
		}
	case !known && (h.has("a renewal creates") || h.has("a renewal looks, and then creates what is gone") || h.has("a renewal takes token 0 for a free key") && token == 0):
		r, ok = record{token: token}, true
	case h.has("a foreign renewal prolongs, and says no") && known && !ok:
		old.expires = h.now().Add(ttl)
		h.records[key] = old
	}
	if !ok {
		return false
	}
	if request < r.renewal && !h.has("renewals count in the order of their arrival") {
		return !h.has("a renewal that was overtaken is false") // the later one has set the time already
	}
	h.did[request] = true
	if h.has("a renewal raises the token") {
		h.last[key]++
		r.token = h.last[key]
	}
	if h.has("nothing is renewed") {
		return true
	}
	if h.has("renewed leases end 3% early") {
		ttl -= 3 * ttl / 100
	}
	expires := h.expiry(ttl)
	switch {
	case h.has("renewals add up"):
		expires = r.expires.Add(ttl)
	case h.has("a renewal drops the ttl"):
		expires = h.now().Add(1000 * time.Hour)
	case h.has("a renewal never shortens") && expires.Before(r.expires):
		expires = r.expires
	}
	if expires.Before(r.expires) && !h.has("a shorter lease wakes nobody") {
		h.signal(key)
	}
	if h.has("a renewal takes the label of its caller") {
		r.label = label
	}
	if r.timer != nil {
		r.timer.Reset(ttl)
	}
	r.expires, r.renewal = expires, request
	h.records[key] = r
	return true
}

func (h handle) release(request int, key string, token lockfx.Token) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.did[request] && !h.has("a repeated release is false") && (h.freed[key] == request || !h.has("only the last release is remembered")) {
		return true
	}
	r, ok := h.leaseOf(key, token)
	old, known := h.records[key]
	switch {
	case h.has("a release does not look at the token"):
		ok = known
	case h.has("a release takes token 0 for a free key"):
		ok = ok || !known && token == 0
	case h.has("a release looks, and then deletes"):
		ok = true
	case h.has("the release of an expired lease is true"):
		ok = known && old.token == token
	}
	if !ok {
		return h.has("a release is always true")
	}
	h.did[request], h.freed[key] = true, request
	if h.has("a release frees nothing") {
		return true
	}
	if h.has("a release deletes the last token") {
		delete(h.last, key)
	}
	delete(h.records, key)
	if h.has("a release leaves a record that has expired") {
		r.expires = h.now()
		h.records[key] = r
	}
	h.signal(key)
	return true
}

// signal wakes the watchers of key. h.mu is held.
func (h handle) signal(key string) {
	if h.has("nobody is woken") {
		return
	}
	for c, k := range h.watchers {
		if k != key {
			continue
		}
		select {
		case c <- struct{}{}:
		default:
		}
		if h.has("a watch wakes once") {
			delete(h.watchers, c)
		}
		if h.has("one waiter is woken") {
			return
		}
	}
}

// deafen drops all watches.
func (e *engine) deafen() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.watchers)
}

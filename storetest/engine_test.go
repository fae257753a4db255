package storetest_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/lockfx/lockfx"
)

// engine is the server side of a correct store, but for one fault. Its methods are what
// happens when a request arrives.
type engine struct {
	fault string
	network

	mu       sync.Mutex // guards what follows
	records  map[string]record
	last     map[string]lockfx.Token
	watchers map[chan struct{}]string
	first    string                   // the label of the first holder
	ttls     map[string]time.Duration // of the first acquisition of a key
	requests int                      // how many were numbered
	granted  map[int]lockfx.Grant     // answers by the number of the request
	did      map[int]bool             // answers by the number of the request
	undone   map[int]bool
}

type record struct {
	token   lockfx.Token
	label   string
	expires time.Time
	second  bool
	request int // that took the lease
	renewal int // the latest request that renewed it
}

func newEngine(fault string) *engine {
	return &engine{
		fault:    fault,
		records:  map[string]record{},
		last:     map[string]lockfx.Token{},
		watchers: map[chan struct{}]string{},
		ttls:     map[string]time.Duration{},
		granted:  map[int]lockfx.Grant{},
		did:      map[int]bool{},
		undone:   map[int]bool{},
	}
}

func (e *engine) has(fault string) bool { return e.fault == fault }

// number returns the number of a request, which its repetitions share.
func (e *engine) number() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests++
	return e.requests
}

type granted struct {
	lockfx.Grant
	err error
}

func (h handle) acquire(request int, key, label string, ttl time.Duration) granted {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.undone[request] {
		return granted{}
	}
	if g, known := h.granted[request]; known {
		_, live := h.leaseOf(key, g.Token)
		switch {
		case h.has("a grant is forgotten with its lease") && g.OK && !live:
		case h.has("only grants are remembered") && !g.OK:
		case h.has("a repetition is not known while it holds") && live:
		default:
			return granted{Grant: g}
		}
	}
	g, err := h.decide(request, key, label, ttl)
	if err == nil {
		h.granted[request] = g
	}
	return granted{g, err}
}

// decide grants or refuses. h.mu is held.
func (h handle) decide(request int, key, label string, ttl time.Duration) (lockfx.Grant, error) {
	r, held := h.records[key]
	if held && !h.now().Before(r.expires) {
		delete(h.records, key)
		if held = h.has("an expired lease is only removed by the first call"); held {
			return lockfx.Grant{RetryAfter: time.Millisecond}, nil
		}
	}
	switch {
	case h.has("nothing is granted"):
		return lockfx.Grant{}, nil
	case h.has("everything is granted"):
		held = false
	case held && h.has("the label is the owner") && label != "" && label == r.label:
		held = false
	case held && h.has("two may hold") && !r.second:
		r.second = true
		h.records[key] = r
		h.last[key]++
		return lockfx.Grant{OK: true, Token: h.last[key]}, nil
	case held && h.has("acquire waits for the lease to end"):
		h.mu.Unlock()
		time.Sleep(time.Until(r.expires))
		h.mu.Lock()
		held = false
	}
	if held {
		return h.refuse(r, key, ttl)
	}
	token := max(h.last[key]+1, lockfx.Token(h.now().UnixMicro()))
	if h.has("tokens do not outlive the data") || h.has("a release deletes the last token") || h.has("a break gives the same token again") {
		token = h.last[key] + 1
	}
	h.last[key] = token
	if h.first == "" {
		h.first = label
	}
	if h.has("the first ttl of a key is kept") {
		if h.ttls[key] == 0 {
			h.ttls[key] = ttl
		}
		ttl = h.ttls[key]
	}
	if h.has("leases last half as long") {
		ttl /= 2
	}
	h.records[key] = record{token: token, label: label, expires: h.now().Add(ttl), request: request}
	return lockfx.Grant{OK: true, Token: token}, nil
}

func (h handle) refuse(r record, key string, ttl time.Duration) (lockfx.Grant, error) {
	g := lockfx.Grant{HeldBy: r.label, RetryAfter: r.expires.Sub(h.now())}
	switch {
	case h.has("a refusal prolongs the lease"):
		r.expires = h.now().Add(ttl)
		h.records[key] = r
	case h.has("contention is an error"):
		return lockfx.Grant{}, fmt.Errorf("could not serialize access: %q is held", key)
	case h.has("a refusal carries the holder's token"):
		g.Token = r.token
	case h.has("a refusal names the first holder for ever"):
		g.HeldBy = h.first
	case h.has("a refusal tells no time"):
		g.RetryAfter = 0
	case h.has("a refusal tells the whole ttl"):
		g.RetryAfter = ttl
	}
	return g, nil
}

// undo takes back what request was granted, or will be if it arrives later.
func (h handle) undo(request int, key string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.undone[request] = !h.has("an undo leaves no mark")
	r, known := h.records[key]
	if known && (r.request == request || h.has("an undo frees whoever holds")) {
		delete(h.records, key)
		h.signal(key)
	}
	return true
}

// leaseOf returns the unexpired lease on key if it carries token. h.mu is held.
func (h handle) leaseOf(key string, token lockfx.Token) (record, bool) {
	r, ok := h.records[key]
	return r, ok && r.token == token && h.now().Before(r.expires)
}

func (h handle) renew(request int, key string, token lockfx.Token, ttl time.Duration) bool {
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
	case h.has("a renewal creates") && !known:
		r, ok = record{token: token}, true
	case h.has("a foreign renewal prolongs, and says no") && known && !ok:
		old.expires = h.now().Add(ttl)
		h.records[key] = old
	}
	if !ok || request < r.renewal && !h.has("renewals count in the order of their arrival") {
		return false
	}
	h.did[request] = true
	if h.has("a renewal raises the token") {
		h.last[key]++
		r.token = h.last[key]
	}
	if h.has("nothing is renewed") {
		return true
	}
	expires := h.now().Add(ttl)
	switch {
	case h.has("renewals add up"):
		expires = r.expires.Add(ttl)
	case h.has("a renewal drops the ttl"):
		expires = h.now().Add(1000 * time.Hour)
	case h.has("a renewal never shortens") && expires.Before(r.expires):
		expires = r.expires
	}
	r.expires, r.renewal = expires, request
	h.records[key] = r
	return true
}

func (h handle) release(request int, key string, token lockfx.Token) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.did[request] && !h.has("a repeated release is false") {
		return true
	}
	_, ok := h.leaseOf(key, token)
	if _, known := h.records[key]; known && h.has("a release does not look at the token") {
		ok = true
	}
	if !ok {
		return h.has("a release is always true")
	}
	h.did[request] = true
	if h.has("a release frees nothing") {
		return true
	}
	if h.has("a release deletes the last token") {
		delete(h.last, key)
	}
	delete(h.records, key)
	h.signal(key)
	return true
}

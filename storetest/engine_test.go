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
	labels   map[string]string        // of the last holder of a key that had one
	offset   time.Duration            // of the engine's clock
	latest   time.Time                // when a lease was granted last
	low      lockfx.Token             // the last token of the first handle, if each has its own
	batch    sync.Mutex               // held by one RenewMany, if they lock each other out
	requests int                      // how many were numbered
	granted  map[int]lockfx.Grant     // answers by the number of the request
	did      map[int]bool             // answers by the number of the request
	undone   map[int]bool
	freed    map[string]int // the last release of a key
}

type record struct {
	token   lockfx.Token
	label   string
	expires time.Time
	ttl     time.Duration // of its acquisition
	taken   time.Time
	timer   *time.Timer // ends the lease, if it takes a timer
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
		labels:   map[string]string{},
		granted:  map[int]lockfx.Grant{},
		did:      map[int]bool{},
		undone:   map[int]bool{},
		freed:    map[string]int{},
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
	token := h.token(key)
	h.last[key], h.latest = token, h.now()
	if h.first == "" {
		h.first = label
	}
	if h.has("an empty label keeps the last one") && label == "" {
		label = h.labels[key]
	}
	h.labels[key] = label
	switch {
	case h.has("the first ttl of a key is kept"):
		if h.ttls[key] == 0 {
			h.ttls[key] = ttl
		}
		ttl = h.ttls[key]
	case h.has("leases last half as long"):
		ttl /= 2
	case h.has("leases end 3% early"):
		ttl -= 3 * ttl / 100
	}
	r = record{token: token, label: label, taken: h.now(), ttl: ttl, expires: h.expiry(ttl), request: request}
	if h.has("the timer of a lease is not stopped") {
		r.timer = time.AfterFunc(ttl, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			delete(h.records, key)
		})
	}
	h.records[key] = r
	return lockfx.Grant{OK: true, Token: token}, nil
}

// token is that of the next lease on key. h.mu is held.
func (h handle) token(key string) lockfx.Token {
	now := lockfx.Token(h.now().UnixMicro())
	switch {
	case h.has("tokens do not outlive the data"), h.has("a release deletes the last token"), h.has("a break gives the same token again"):
		return h.last[key] + 1
	case h.has("tokens are the clock"), h.has("tokens follow the clock back") && h.now().Before(h.latest):
		return now
	case h.has("each handle has tokens of its own") && !h.second:
		h.low++
		return h.low
	}
	return max(h.last[key]+1, now)
}

// expiry is the end of a lease that begins now. h.mu is held.
func (h handle) expiry(ttl time.Duration) time.Time {
	if h.has("instants are 64 bits of nanoseconds") {
		return time.Unix(0, h.now().UnixNano()+int64(ttl))
	}
	return h.now().Add(ttl)
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
	case h.has("a refusal forgets the renewals") && r.renewal > 0:
		g.RetryAfter = max(1, r.taken.Add(r.ttl).Sub(h.now()))
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

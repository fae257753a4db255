package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockfx/lockfx"
)

// engine is a correct store in this process, but for one fault.
type engine struct {
	fault string

	mu       sync.Mutex
	records  map[string]record
	last     map[string]lockfx.Token
	watchers map[chan struct{}]string
	first    string                   // the label of the first holder
	ttls     map[string]time.Duration // of the first acquisition of a key
	down     bool                     // cut off
	deaf     bool                     // answers are lost
}

type record struct {
	token   lockfx.Token
	label   string
	expires time.Time
	second  bool
}

// handle is a client of an engine, with a clock of its own that nobody should use.
type handle struct {
	*engine
	skew time.Duration
}

func newEngine(fault string) *engine {
	return &engine{
		fault:    fault,
		records:  map[string]record{},
		last:     map[string]lockfx.Token{},
		watchers: map[chan struct{}]string{},
		ttls:     map[string]time.Duration{},
	}
}

func (e *engine) has(fault string) bool { return e.fault == fault }

var errDown = errors.New("no route to the engine")

func (h handle) now() time.Time {
	if h.has("the clock of the client decides") {
		return time.Now().Add(h.skew)
	}
	return time.Now()
}

// begin checks the arguments and takes the mutex; unlock it if err is nil.
func (h handle) begin(ctx context.Context, key string) (string, error) {
	bad := lockfx.CheckKey(key)
	switch {
	case strings.Contains(key, "/") && h.has("some keys are refused"):
		return "", fmt.Errorf("%w: key %q must not contain a slash", lockfx.ErrConfig, key)
	case bad != nil && key != "" && len(key) <= lockfx.MaxKeyLen && h.has("odd bytes are taken"):
	case key == "" && h.has("the empty key is taken"):
	case len(key) > lockfx.MaxKeyLen && h.has("long keys are cut off"):
	case bad != nil:
		return "", bad
	}
	if h.has("keys are folded by case") {
		key = strings.ToLower(key)
	}
	if h.has("all keys are one") {
		key = "*"
	}
	if h.has("keys are a prefix match") {
		key = strings.TrimRight(key, "0123456789")
	}
	if h.has("long keys are cut off") {
		key = key[:min(len(key), 255)]
	}
	if err := ctx.Err(); err != nil && !h.has("a dead context is not looked at") {
		return "", err
	}
	h.mu.Lock()
	if h.down {
		h.mu.Unlock()
		return "", errDown
	}
	return key, nil
}

func (h handle) ttl(ttl time.Duration) (time.Duration, error) {
	if h.has("the ttl is cut down to milliseconds") {
		return ttl.Truncate(time.Millisecond), nil
	}
	return ttl, lockfx.CheckTTL(ttl, time.Millisecond)
}

func (h handle) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	ttl, err := h.ttl(ttl)
	if err != nil {
		return lockfx.Grant{}, err
	}
	key, err = h.begin(ctx, key)
	if errors.Is(err, errDown) && h.has("an outage is a refusal") {
		return lockfx.Grant{}, nil
	}
	if err != nil {
		return lockfx.Grant{}, err
	}
	defer h.mu.Unlock()
	label := lockfx.LabelFrom(ctx)
	r, held := h.records[key]
	if held && !h.now().Before(r.expires) {
		delete(h.records, key)
		if held = h.has("an expired lease is only removed by the first call"); held {
			return lockfx.Grant{RetryAfter: time.Millisecond}, nil
		}
	}
	if held && h.has("the label is the owner") && label != "" && label == r.label {
		held = false
	}
	if h.has("nothing is granted") {
		return lockfx.Grant{}, nil
	}
	if h.has("everything is granted") {
		held = false
	}
	if held && h.has("two may hold") && !r.second {
		r.second = true
		h.records[key] = r
		h.last[key]++
		return lockfx.Grant{OK: true, Token: h.last[key]}, nil
	}
	if held && h.has("acquire waits for the lease to end") {
		h.mu.Unlock()
		time.Sleep(time.Until(r.expires))
		h.mu.Lock()
		held = false
	}
	if held {
		if h.has("a refusal prolongs the lease") {
			r.expires = h.now().Add(ttl)
			h.records[key] = r
		}
		if h.has("contention is an error") {
			return lockfx.Grant{}, fmt.Errorf("could not serialize access: %q is held", key)
		}
		g := lockfx.Grant{HeldBy: r.label, RetryAfter: r.expires.Sub(h.now())}
		switch {
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
	h.records[key] = record{token: token, label: label, expires: h.now().Add(ttl)}
	if h.deaf {
		if !h.has("a lost reply leaves a lease") {
			delete(h.records, key)
		}
		return lockfx.Grant{}, errDown
	}
	return lockfx.Grant{OK: true, Token: token}, nil
}

// leaseOf returns the unexpired lease on key if it carries token.
func (h handle) leaseOf(key string, token lockfx.Token) (record, bool) {
	r, ok := h.records[key]
	return r, ok && r.token == token && h.now().Before(r.expires)
}

func (h handle) Renew(ctx context.Context, key string, token lockfx.Token, ttl time.Duration) (bool, error) {
	ttl, err := h.ttl(ttl)
	if err != nil {
		return false, err
	}
	key, err = h.begin(ctx, key)
	if errors.Is(err, errDown) && h.has("a renewal in an outage is false") {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer h.mu.Unlock()
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
	if !ok {
		return false, nil
	}
	if h.has("a renewal raises the token") {
		h.last[key]++
		r.token = h.last[key]
	}
	if h.has("nothing is renewed") {
		return true, nil
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
	r.expires = expires
	h.records[key] = r
	return true, nil
}

func (h handle) Release(ctx context.Context, key string, token lockfx.Token) (bool, error) {
	key, err := h.begin(ctx, key)
	if errors.Is(err, errDown) && h.has("a release in an outage is true") {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer h.mu.Unlock()
	_, ok := h.leaseOf(key, token)
	if _, known := h.records[key]; known && h.has("a release does not look at the token") {
		ok = true
	}
	if !ok {
		return h.has("a release is always true"), nil
	}
	if h.has("a release frees nothing") {
		return true, nil
	}
	if h.has("a release deletes the last token") {
		delete(h.last, key)
	}
	delete(h.records, key)
	h.signal(key)
	return true, nil
}

// signal wakes the watchers of key.
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

func (h handle) Watch(ctx context.Context, key string) (<-chan struct{}, func(), error) {
	key, err := h.begin(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	defer h.mu.Unlock()
	c := make(chan struct{}, 1)
	if h.has("signals need a reader") {
		c = make(chan struct{})
	}
	h.watchers[c] = key
	if h.has("a watch ends with the context of its call") {
		context.AfterFunc(ctx, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			delete(h.watchers, c)
			close(c)
		})
	}
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watchers, c)
		if h.has("stopping one watch stops all") {
			clear(h.watchers)
		}
	}, nil
}

func (h handle) Inspect(ctx context.Context, key string) (lockfx.Lease, error) {
	key, err := h.begin(ctx, key)
	if err != nil {
		return lockfx.Lease{}, err
	}
	defer h.mu.Unlock()
	r, ok := h.records[key]
	if !ok || !h.now().Before(r.expires) && !h.has("inspection shows expired leases") {
		return lockfx.Lease{}, nil
	}
	if h.has("inspection prolongs") {
		r.expires = r.expires.Add(time.Second)
		h.records[key] = r
	}
	if h.has("inspection shows the key as the label") {
		r.label = key
	}
	return lockfx.Lease{Token: r.token, Label: r.label, TimeLeft: r.expires.Sub(h.now())}, nil
}

func (h handle) Break(ctx context.Context, key string) (bool, error) {
	key, err := h.begin(ctx, key)
	if err != nil {
		return false, err
	}
	defer h.mu.Unlock()
	r, ok := h.records[key]
	if h.has("a break is always true") {
		delete(h.records, key)
		return true, nil
	}
	if !ok || !h.now().Before(r.expires) {
		return false, nil
	}
	delete(h.records, key)
	if h.has("a break gives the same token again") {
		h.last[key] = r.token - 1
	}
	h.signal(key)
	return true, nil
}

// Crash leaves a lease behind, as a killed process does.
func (h handle) Crash(ctx context.Context, key string, ttl time.Duration) (lockfx.Token, error) {
	g, err := h.Acquire(ctx, key, ttl)
	return g.Token, err
}

func (h handle) RenewMany(ctx context.Context, renewals []lockfx.Renewal) []lockfx.Result {
	if len(renewals) == 0 && h.has("many renewals of none answer one") {
		return make([]lockfx.Result, 1)
	}
	results := make([]lockfx.Result, len(renewals))
	for i, r := range renewals {
		if h.has("many renewals extend nothing") {
			_, ok := h.leaseOf(r.Key, r.Token)
			results[i] = lockfx.Result{OK: ok && r.TTL > 0, Err: errors.Join(lockfx.CheckKey(r.Key), lockfx.CheckTTL(r.TTL, 1))}
			continue
		}
		results[i].OK, results[i].Err = h.Renew(ctx, r.Key, r.Token, r.TTL)
	}
	if h.has("many renewals answer in another order") {
		slices.Reverse(results)
	}
	return results
}

// Close has nothing to end.
func (h handle) Close(context.Context) error {
	if h.has("closing frees the leases") {
		clear(h.records)
	}
	return nil
}

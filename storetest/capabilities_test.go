package storetest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/lockfx/lockfx"
)

// begin checks the call and takes the mutex of the engine; unlock it if err is nil.
func (h handle) begin(ctx context.Context, op, key string) (string, error) {
	key, err := h.check(ctx, op, key)
	if err == nil {
		h.mu.Lock()
	}
	return key, err
}

func (h handle) Watch(ctx context.Context, key string) (<-chan struct{}, func(), error) {
	key, err := h.begin(ctx, "watch", key)
	if err != nil {
		return nil, nil, err
	}
	defer h.mu.Unlock()
	c := make(chan struct{}, 1)
	if h.has("signals need a reader") {
		c = make(chan struct{})
	}
	h.watchers[c] = key
	ended := make(chan struct{})
	switch {
	case h.has("a watch is lost at once"):
		delete(h.watchers, c)
		close(c)
	case h.has("a watch always signals"):
		go func() {
			for {
				select {
				case <-ended:
					return
				case <-time.After(time.Millisecond):
				}
				select {
				case c <- struct{}{}:
				default:
				}
			}
		}()
	}
	end := sync.OnceFunc(func() { close(ended) })
	if h.has("a watch ends with the context of its call") {
		context.AfterFunc(ctx, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			delete(h.watchers, c)
			close(c)
		})
	}
	return c, func() {
		end()
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watchers, c)
		if h.has("stopping one watch stops all") {
			clear(h.watchers)
		}
	}, nil
}

func (h handle) Inspect(ctx context.Context, key string) (lockfx.Lease, error) {
	key, err := h.begin(ctx, "inspect", key)
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
	left := r.expires.Sub(h.now())
	if h.has("inspection shows a constant ttl") {
		left = r.ttl
	}
	return lockfx.Lease{Token: r.token, Label: r.label, TimeLeft: left}, nil
}

// Break looks whose lease it is that its caller means, and breaks that one alone.
func (h handle) Break(ctx context.Context, key string) (bool, error) {
	key, err := h.check(ctx, "break", key)
	if err != nil {
		return false, err
	}
	var token lockfx.Token
	if !h.has("a break frees whoever holds when it arrives") {
		token, err = ask(ctx, h.engine, func() lockfx.Token {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.records[key].token
		})
		if err != nil {
			return false, err
		}
	}
	return ask(ctx, h.engine, func() bool { return h.breakUp(key, token) })
}

func (h handle) breakUp(key string, token lockfx.Token) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	r, known := h.records[key]
	live := known && h.now().Before(r.expires)
	switch {
	case h.has("a break is always true"):
		delete(h.records, key)
		return true
	case h.has("a break of an expired lease is true") && known:
	case !live || r.token != token && !h.has("a break frees whoever holds when it arrives"):
		return false
	}
	delete(h.records, key)
	if h.has("a break gives the same token again") {
		h.last[key] = r.token - 1
	}
	h.signal(key)
	return true
}

func (h handle) RenewMany(ctx context.Context, renewals []lockfx.Renewal) []lockfx.Result {
	if len(renewals) == 0 && h.has("many renewals of none answer one") {
		return make([]lockfx.Result, 1)
	}
	results := make([]lockfx.Result, len(renewals))
	if h.has("many renewals at once are a deadlock") {
		if !h.batch.TryLock() {
			return slices.Repeat([]lockfx.Result{{Err: errors.New("deadlock detected")}}, len(renewals))
		}
		defer h.batch.Unlock()
		time.Sleep(time.Microsecond)
	}
	for i, r := range renewals {
		if h.has("many renewals extend nothing") {
			results[i] = lockfx.Result{OK: h.holds(r.Key, r.Token) && r.TTL > 0, Err: errors.Join(lockfx.CheckKey(r.Key), lockfx.CheckTTL(r.TTL, 1))}
			continue
		}
		results[i].OK, results[i].Err = h.Renew(ctx, r.Key, r.Token, r.TTL)
		if h.has("many renewals revive") {
			results[i].OK = h.revive(r) || results[i].OK
		}
	}
	if h.has("many renewals answer in another order") {
		slices.Reverse(results)
	}
	return results
}

// Close has nothing to end.
func (h handle) Close(context.Context) error {
	switch {
	case h.has("closing frees the leases"):
		clear(h.records)
	case h.has("closing loses the watches"):
		clear(h.watchers)
	}
	return nil
}

// revive renews an expired lease that nobody has taken.
func (h handle) revive(renewal lockfx.Renewal) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	r, known := h.records[renewal.Key]
	if !known || r.token != renewal.Token || h.now().Before(r.expires) {
		return false
	}
	r.expires = h.now().Add(renewal.TTL)
	h.records[renewal.Key] = r
	return true
}

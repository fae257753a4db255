package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lockfx/lockfx"
)

// handle is a client of an engine, with a clock of its own that nobody should use.
type handle struct {
	*engine
	skew   time.Duration
	second bool
}

func (h handle) now() time.Time {
	if h.has("the clock of the client decides") {
		return time.Now().Add(h.skew)
	}
	return time.Now().Add(h.offset)
}

// check returns the key as the engine knows it.
func (h handle) check(ctx context.Context, op, key string) (string, error) {
	bad := lockfx.CheckKey(key)
	switch {
	case strings.Contains(key, "/") && h.has("some keys are refused"):
		return "", fmt.Errorf("%w: key %q must not contain a slash", lockfx.ErrConfig, key)
	case strings.Contains(key, "\x00") && h.has("NUL is taken"):
	case !utf8.ValidString(key) && h.has("what is no UTF-8 is taken"):
	case key == "" && (h.has("the empty key is taken") || h.has("the empty key is taken by "+op)):
	case len(key) > lockfx.MaxKeyLen && h.has("513 bytes are taken"):
	case bad != nil:
		return "", bad
	}
	switch {
	case h.has("keys are folded by case"):
		key = strings.ToLower(key)
	case h.has("all keys are one"):
		key = "*"
	case h.has("keys are hashed to 32 bits"):
		sum := fnv.New32a()
		sum.Write([]byte(key))
		key = fmt.Sprint(sum.Sum32())
	case h.has("keys are a prefix match"):
		key = strings.TrimRight(key, "0123456789")
	case h.has("long keys are cut off"):
		key = key[:min(len(key), 255)]
	case h.has(op + " does not look at a dead context"):
		return key, nil
	}
	return key, ctx.Err()
}

func (h handle) ttl(ttl time.Duration) (time.Duration, error) {
	switch {
	case ttl == 0 && h.has("a ttl of zero lasts for ever"):
		return 1000 * time.Hour, nil
	case ttl < 0 && h.has("a negative ttl is taken"):
		return ttl, nil
	case ttl > 0 && ttl < time.Millisecond && h.has("the ttl is rounded to the resolution"):
		return time.Millisecond, nil
	case h.has("the ttl is cut down to milliseconds"):
		return ttl.Truncate(time.Millisecond), nil
	}
	return ttl, lockfx.CheckTTL(ttl, time.Millisecond)
}

func (h handle) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	ttl, err := h.ttl(ttl)
	if err != nil {
		return lockfx.Grant{}, err
	}
	if key, err = h.check(ctx, "acquire", key); err != nil {
		return lockfx.Grant{}, err
	}
	label := lockfx.LabelFrom(ctx)
	if h.has("labels end at a colon") {
		label, _, _ = strings.Cut(label, ":")
	}
	request := h.number()
	g, err := ask(ctx, h.engine, func() granted { return h.acquire(request, key, label, ttl) })
	switch {
	case err == nil:
		if g.OK && h.has("a lease ends with the context of its call") {
			context.AfterFunc(ctx, func() {
				time.AfterFunc(time.Millisecond, func() { h.release(h.number(), key, g.Token) })
			})
		}
		return g.Grant, g.err
	case errors.Is(err, errDown) && h.has("an outage is a refusal"):
		return lockfx.Grant{}, nil
	case !h.has("a lost reply leaves a lease"):
		h.takeBack(ctx, request, key)
	}
	return lockfx.Grant{}, err
}

// takeBack undoes an acquisition whose outcome is unknown, whatever ctx says.
func (h handle) takeBack(ctx context.Context, request int, key string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attempt/2)
	defer cancel()
	_, _ = ask(ctx, h.engine, func() bool { return h.undo(request, key) })
}

func (h handle) Renew(ctx context.Context, key string, token lockfx.Token, ttl time.Duration) (bool, error) {
	ttl, err := h.ttl(ttl)
	if err != nil {
		return false, err
	}
	if key, err = h.check(ctx, "renew", key); err != nil {
		return false, err
	}
	request := h.number()
	if strings.HasPrefix(h.fault, "a renewal looks, and then") {
		if !h.holds(key, token) {
			return false, nil
		}
		time.Sleep(time.Microsecond)
	}
	ok, err := ask(ctx, h.engine, func() bool { return h.renew(request, key, lockfx.LabelFrom(ctx), token, ttl) })
	if errors.Is(err, errDown) && h.has("a renewal in an outage is false") {
		return false, nil
	}
	return ok, err
}

func (h handle) Release(ctx context.Context, key string, token lockfx.Token) (bool, error) {
	key, err := h.check(ctx, "release", key)
	if err != nil {
		return false, err
	}
	request := h.number()
	if h.has("a release looks, and then deletes") {
		if !h.holds(key, token) {
			return false, nil
		}
		time.Sleep(time.Microsecond)
	}
	ok, err := ask(ctx, h.engine, func() bool { return h.release(request, key, token) })
	if errors.Is(err, errDown) && h.has("a release in an outage is true") {
		return true, nil
	}
	return ok, err
}

// holds is a look that nothing keeps from being out of date.
func (h handle) holds(key string, token lockfx.Token) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.leaseOf(key, token)
	return ok
}

// Crash leaves a lease behind, as a killed process does.
func (h handle) Crash(ctx context.Context, key string, ttl time.Duration) (lockfx.Token, error) {
	g, err := h.Acquire(ctx, key, ttl)
	return g.Token, err
}

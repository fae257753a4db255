package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lockfx/lockfx"
)

// handle is a client of an engine, with a clock of its own that nobody should use.
type handle struct {
	*engine
	skew time.Duration
}

func (h handle) now() time.Time {
	if h.has("the clock of the client decides") {
		return time.Now().Add(h.skew)
	}
	return time.Now()
}

// check returns the key as the engine knows it.
func (h handle) check(ctx context.Context, key string) (string, error) {
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
	switch {
	case h.has("keys are folded by case"):
		key = strings.ToLower(key)
	case h.has("all keys are one"):
		key = "*"
	case h.has("keys are a prefix match"):
		key = strings.TrimRight(key, "0123456789")
	case h.has("long keys are cut off"):
		key = key[:min(len(key), 255)]
	case h.has("a dead context is not looked at"):
		return key, nil
	}
	return key, ctx.Err()
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
	if key, err = h.check(ctx, key); err != nil {
		return lockfx.Grant{}, err
	}
	request := h.number()
	g, err := ask(ctx, &h.network, func() granted { return h.acquire(request, key, lockfx.LabelFrom(ctx), ttl) })
	switch {
	case err == nil:
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
	_, _ = ask(ctx, &h.network, func() bool { return h.undo(request, key) })
}

func (h handle) Renew(ctx context.Context, key string, token lockfx.Token, ttl time.Duration) (bool, error) {
	ttl, err := h.ttl(ttl)
	if err != nil {
		return false, err
	}
	if key, err = h.check(ctx, key); err != nil {
		return false, err
	}
	request := h.number()
	ok, err := ask(ctx, &h.network, func() bool { return h.renew(request, key, token, ttl) })
	if errors.Is(err, errDown) && h.has("a renewal in an outage is false") {
		return false, nil
	}
	return ok, err
}

func (h handle) Release(ctx context.Context, key string, token lockfx.Token) (bool, error) {
	key, err := h.check(ctx, key)
	if err != nil {
		return false, err
	}
	request := h.number()
	ok, err := ask(ctx, &h.network, func() bool { return h.release(request, key, token) })
	if errors.Is(err, errDown) && h.has("a release in an outage is true") {
		return true, nil
	}
	return ok, err
}

// Crash leaves a lease behind, as a killed process does.
func (h handle) Crash(ctx context.Context, key string, ttl time.Duration) (lockfx.Token, error) {
	g, err := h.Acquire(ctx, key, ttl)
	return g.Token, err
}

package lockfx

import (
	"context"
	"strconv"
)

// Token is a fencing token: the number of one acquisition. Zero means none.
// For one key, tokens of one store rise strictly for ever, so a resource that
// remembers the greatest token it has seen can refuse a writer whose lease has
// passed on.
//
// A token may exceed 2^53. Formatting it as a floating-point number loses
// digits: pass it as an integer or as the string of [Token.String].
type Token int64

// String returns the token in decimal.
func (t Token) String() string { return strconv.FormatInt(int64(t), 10) }

// Valid reports whether t can fence anything: only tokens of 1 and more do.
func (t Token) Valid() bool { return t >= 1 }

type tokenKey struct{}

// WithToken returns a context that carries the token t of a run under the lock on key.
// The lifecycle calls it for the context of a run.
func WithToken(ctx context.Context, key string, t Token) context.Context {
	return &tokenContext{ctx, key, t}
}

// tokenContext saves what context.WithValue spends on boxing the token.
type tokenContext struct {
	context.Context
	key   string
	token Token
}

func (c *tokenContext) Value(key any) any {
	if key == (tokenKey{}) {
		return c // a pointer: handing it out allocates nothing
	}
	return c.Context.Value(key)
}

// TokenFrom returns the fencing token of the innermost run that ctx belongs to, or 0
// when ctx belongs to none. Code that may be called from a run inside another lock's
// run should name the lock: see [TokenFor]. Neither says whether the lease is still
// valid.
func TokenFrom(ctx context.Context) Token {
	if c, ok := ctx.Value(tokenKey{}).(*tokenContext); ok {
		return c.token
	}
	return 0
}

// TokenFor returns the fencing token of the innermost run under the lock on key that
// ctx belongs to, or 0 when it belongs to none.
func TokenFor(ctx context.Context, key string) Token {
	c, ok := ctx.Value(tokenKey{}).(*tokenContext)
	for ok && c.key != key {
		c, ok = c.Context.Value(tokenKey{}).(*tokenContext)
	}
	if !ok {
		return 0
	}
	return c.token
}

type labelKey struct{}

// WithLabel returns a context that carries a label of the caller for people,
// such as "host/pid/app". A store shows it to those it refuses, as
// [Grant.HeldBy]. It never decides who owns a lease: the token does.
func WithLabel(ctx context.Context, label string) context.Context {
	return &labelContext{ctx, label}
}

// labelContext saves what context.WithValue spends on boxing the label.
type labelContext struct {
	context.Context
	label string
}

func (c *labelContext) Value(key any) any {
	if key == (labelKey{}) {
		return c // a pointer: handing it out allocates nothing
	}
	return c.Context.Value(key)
}

// LabelFrom returns the label that ctx carries, or "".
func LabelFrom(ctx context.Context) string {
	if c, ok := ctx.Value(labelKey{}).(*labelContext); ok {
		return c.label
	}
	return ""
}

package storemodel

import (
	"context"
	"time"

	"github.com/lockfx/lockfx"
)

// Faults are mistakes that a store could make, each over a store that makes none.
func (c Comparison) Faults() []func(Store) Store {
	return []func(Store) Store{
		func(s Store) Store { return renewsForeign{s} },
		func(s Store) Store { return renewRecreates{s} },
		func(s Store) Store { return releasesForeign{s} },
		func(s Store) Store { return livesLonger{s, c.Unit} },
		func(s Store) Store { return tokensRepeat{s} },
		func(s Store) Store { return hidesLabel{s} },
		func(s Store) Store { return breaksNothing{s} },
		func(s Store) Store { return ignoresContext{s} },
		func(s Store) Store { return Deaf{s} },
	}
}

// Deaf is a store that drops every signal.
type Deaf struct{ Store }

// Watch returns a channel that stays empty.
func (Deaf) Watch(context.Context, string) (<-chan struct{}, func(), error) {
	return make(chan struct{}, 1), func() {}, nil
}

type (
	renewsForeign   struct{ Store }
	renewRecreates  struct{ Store }
	releasesForeign struct{ Store }
	tokensRepeat    struct{ Store }
	hidesLabel      struct{ Store }
	breaksNothing   struct{ Store }
	ignoresContext  struct{ Store }
	livesLonger     struct {
		Store
		by time.Duration
	}
)

func (f renewsForeign) Renew(ctx context.Context, key string, _ lockfx.Token, ttl time.Duration) (bool, error) {
	l, err := f.Inspect(ctx, key)
	if err != nil {
		return false, err
	}
	return f.Store.Renew(ctx, key, l.Token, ttl)
}

func (f renewRecreates) Renew(ctx context.Context, key string, token lockfx.Token, ttl time.Duration) (bool, error) {
	if ok, err := f.Store.Renew(ctx, key, token, ttl); ok || err != nil {
		return ok, err
	}
	g, err := f.Acquire(ctx, key, ttl)
	return g.OK, err
}

func (f releasesForeign) Release(ctx context.Context, key string, _ lockfx.Token) (bool, error) {
	return f.Break(ctx, key)
}

func (f livesLonger) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	return f.Store.Acquire(ctx, key, ttl+f.by)
}

func (f tokensRepeat) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	g, err := f.Store.Acquire(ctx, key, ttl)
	g.Token &^= 1
	return g, err
}

func (f hidesLabel) Inspect(ctx context.Context, key string) (lockfx.Lease, error) {
	l, err := f.Store.Inspect(ctx, key)
	l.Label = ""
	return l, err
}

func (f breaksNothing) Break(ctx context.Context, key string) (bool, error) {
	l, err := f.Inspect(ctx, key)
	return l.Token != 0, err
}

func (f ignoresContext) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	return f.Store.Acquire(context.WithoutCancel(ctx), key, ttl)
}

package filestore_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
)

// The planted faults: each one is a mistake that a store could make.
type (
	renewsForeign   struct{ full }
	renewRecreates  struct{ full }
	releasesForeign struct{ full }
	livesLonger     struct{ full }
	tokensRepeat    struct{ full }
	hidesLabel      struct{ full }
	breaksNothing   struct{ full }
	ignoresContext  struct{ full }
	losesSignals    struct{ full }
)

func (f renewsForeign) Renew(ctx context.Context, key string, _ lockfx.Token, ttl time.Duration) (bool, error) {
	l, err := f.Inspect(ctx, key)
	if err != nil {
		return false, err
	}
	return f.full.Renew(ctx, key, l.Token, ttl)
}

func (f renewRecreates) Renew(ctx context.Context, key string, token lockfx.Token, ttl time.Duration) (bool, error) {
	if ok, err := f.full.Renew(ctx, key, token, ttl); ok || err != nil {
		return ok, err
	}
	g, err := f.Acquire(ctx, key, ttl)
	return g.OK, err
}

func (f releasesForeign) Release(ctx context.Context, key string, _ lockfx.Token) (bool, error) {
	return f.Break(ctx, key)
}

func (f livesLonger) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	return f.full.Acquire(ctx, key, ttl+time.Millisecond)
}

func (f tokensRepeat) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	g, err := f.full.Acquire(ctx, key, ttl)
	g.Token &^= 1
	return g, err
}

func (f hidesLabel) Inspect(ctx context.Context, key string) (lockfx.Lease, error) {
	l, err := f.full.Inspect(ctx, key)
	l.Label = ""
	return l, err
}

func (f breaksNothing) Break(ctx context.Context, key string) (bool, error) {
	l, err := f.Inspect(ctx, key)
	return l.Token != 0, err
}

func (f ignoresContext) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	return f.full.Acquire(context.WithoutCancel(ctx), key, ttl)
}

func (f losesSignals) Watch(context.Context, string) (<-chan struct{}, func(), error) {
	return make(chan struct{}, 1), func() {}, nil
}

func TestModelNoticesPlantedFaults(t *testing.T) {
	for _, plant := range []func(full) full{
		func(s full) full { return renewsForeign{s} },
		func(s full) full { return renewRecreates{s} },
		func(s full) full { return releasesForeign{s} },
		func(s full) full { return livesLonger{s} },
		func(s full) full { return tokensRepeat{s} },
		func(s full) full { return hidesLabel{s} },
		func(s full) full { return breaksNothing{s} },
		func(s full) full { return ignoresContext{s} },
		func(s full) full { return losesSignals{s} },
	} {
		s, c, _ := newStore(t)
		faulty := plant(s)
		wakes := wakes
		if _, deaf := faulty.(losesSignals); deaf {
			wakes = signalled // there is nothing to wait for
		}
		if err := disagreement(faulty, c, 1, 2_000, wakes); err == nil {
			t.Errorf("%T goes unnoticed", faulty)
		}
	}
}

package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
)

// Bench measures the operations of a store, each as a sub-benchmark: acquire and
// release of a free key, a refusal, a renewal, and, for a [lockfx.Watcher], the
// hand-off from a release to the grant of one who waits.
func Bench(b *testing.B, newHarness Factory) {
	b.Helper()
	bench := func(name string, f func(b *testing.B, s lockfx.Store)) {
		b.Run(name, func(b *testing.B) {
			h, err := newHarness()
			if err != nil {
				b.Fatal(err)
			}
			if h.Close != nil {
				defer h.Close()
			}
			b.ReportAllocs()
			f(b, h.Store)
		})
	}
	bench("AcquireRelease", func(b *testing.B, s lockfx.Store) {
		for b.Loop() {
			mustRelease(b, s, mustAcquire(b, s))
		}
	})
	bench("Refused", func(b *testing.B, s lockfx.Store) {
		mustAcquire(b, s)
		for b.Loop() {
			if g, err := s.Acquire(b.Context(), key, benchTTL); g.OK || err != nil {
				b.Fatalf("acquire a held key: %+v, %v", g, err)
			}
		}
	})
	bench("Renew", func(b *testing.B, s lockfx.Store) {
		token := mustAcquire(b, s)
		for b.Loop() {
			if ok, err := s.Renew(b.Context(), key, token, benchTTL); !ok || err != nil {
				b.Fatalf("renew: %v, %v", ok, err)
			}
		}
	})
	bench("HandOff", func(b *testing.B, s lockfx.Store) {
		w, ok := s.(lockfx.Watcher)
		if !ok {
			return
		}
		handOffs(b, s, w)
	})
}

const benchTTL = time.Hour

func mustAcquire(b *testing.B, s lockfx.Store) lockfx.Token {
	g, err := s.Acquire(b.Context(), key, benchTTL)
	if !g.OK || err != nil {
		b.Fatalf("acquire: %+v, %v", g, err)
	}
	return g.Token
}

func mustRelease(b *testing.B, s lockfx.Store, token lockfx.Token) {
	if ok, err := s.Release(b.Context(), key, token); !ok || err != nil {
		b.Fatalf("release: %v, %v", ok, err)
	}
}

// handOffs lets a waiter take the key after each release of the holder.
func handOffs(b *testing.B, s lockfx.Store, w lockfx.Watcher) {
	freed, stop, err := w.Watch(b.Context(), key)
	if err != nil {
		b.Fatal(err)
	}
	defer stop()
	for b.Loop() {
		token := mustAcquire(b, s)
		select { // what the last release left
		case <-freed:
		default:
		}
		taken := make(chan lockfx.Token, 1)
		go func() { taken <- takeWhenFreed(b.Context(), s, freed) }()
		mustRelease(b, s, token)
		if token = <-taken; token == 0 {
			b.Fatal("the waiter was not granted the key")
		}
		mustRelease(b, s, token)
	}
}

// takeWhenFreed waits for a signal and acquires, until it is granted.
func takeWhenFreed(ctx context.Context, s lockfx.Store, freed <-chan struct{}) lockfx.Token {
	for {
		select {
		case <-freed:
		case <-ctx.Done():
			return 0
		}
		if g, err := s.Acquire(ctx, key, benchTTL); err != nil || g.OK {
			return g.Token
		}
	}
}

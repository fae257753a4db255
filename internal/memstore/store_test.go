package memstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockfx/lockfx/internal/memstore"
)

func BenchmarkAcquireRelease(b *testing.B) {
	s, ctx := memstore.New(), context.Background()
	b.ReportAllocs()
	for b.Loop() {
		g, err := s.Acquire(ctx, "nightly", time.Second)
		if err != nil || !g.OK {
			b.Fatal(g, err)
		}
		if ok, err := s.Release(ctx, "nightly", g.Token); err != nil || !ok {
			b.Fatal(ok, err)
		}
	}
}

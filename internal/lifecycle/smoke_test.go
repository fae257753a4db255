package lifecycle

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx/internal/memstore"
)

func BenchmarkRun(b *testing.B) {
	m, err := New(Config{Key: "k", TTL: 30 * time.Second, Store: memstore.New()})
	if err != nil { b.Fatal(err) }
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Run(context.Background(), func(context.Context, *Hold) error { return nil }); err != nil { b.Fatal(err) }
	}
}

func TestSmoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := New(Config{Key: "k", TTL: 30 * time.Second, Store: memstore.New()})
		if err != nil { t.Fatal(err) }
		err = m.Run(t.Context(), func(ctx context.Context, h *Hold) error {
			time.Sleep(time.Hour)
			t.Log(h.Held(), h.Token(), h.Deadline(), ctx.Err())
			return nil
		})
		t.Log(err, m.State(), m.Held(), m.Token())
		if err := m.Dispose(t.Context()); err != nil { t.Fatal(err) }
		_, err = m.Acquire(t.Context())
		t.Log(err)
	})
}

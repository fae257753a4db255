package pg_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// Who waits for a lock gets it when it is free: woken over a direct connection, by
// polling behind a pooler.
func TestWhoWaitsIsNext(t *testing.T) {
	s := shared(t)
	b := pgbouncer(t, s)
	for name, addr := range map[string]string{"direct": s.Addr(), "behind PgBouncer": b.Addr()} {
		t.Run(name, func(t *testing.T) {
			e, err := enter(s, addr, unprepared)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(e.close)
			other := e.store(t)
			refused := make(chan struct{}, 1)
			lock, err := fxlock.New(fxlock.WithKey("nightly"), fxlock.WithTTL(time.Hour), fxlock.WithStore(e.store(t)),
				fxlock.WaitForever(), fxlock.Observer(func(event lockfx.Event) {
					if event.Kind == lockfx.EventRefused {
						refused <- struct{}{}
					}
				}))
			if err != nil {
				t.Fatal(err)
			}
			token := grants(t, other, "nightly", time.Hour)
			waited := start(func() (next lockfx.Token, err error) {
				err = lock.Do(context.Background(), func(_ context.Context, h lockfx.Holder) error {
					next = h.Token()
					return nil
				})
				return next, err
			})
			<-refused
			if ok, err := other.Release(t.Context(), "nightly", token); !ok || err != nil {
				t.Fatal(ok, err)
			}
			if got := <-waited; got.err != nil || got.value <= token {
				t.Errorf("token %v after %v, %v", got.value, token, got.err)
			}
			if err := lock.Dispose(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

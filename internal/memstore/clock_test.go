package memstore

import (
	"context"
	"testing"
	"time"
)

// A clock that is read before the mutex is taken shows an instant from before a
// wait for the mutex. So it must find the mutex taken whenever it is read.
func TestCase_A08_ClockIsReadAtTheDecision(t *testing.T) {
	reads, early := 0, 0
	var s *Store
	s = New(WithNow(func() time.Time {
		reads++
		if s.mu.TryLock() {
			s.mu.Unlock()
			early++
		}
		return time.Unix(1, 0)
	}))
	ctx := context.Background()
	g, _ := s.Acquire(ctx, "nightly", time.Minute)
	_, _ = s.Renew(ctx, "nightly", g.Token, time.Minute)
	_, _ = s.Inspect(ctx, "nightly")
	_, _ = s.Break(ctx, "nightly")
	_, _ = s.Release(ctx, "nightly", g.Token)
	if reads != 5 || early != 0 {
		t.Errorf("%d of %d readings came before the mutex; want 0 of 5", early, reads)
	}

	_ = s.now() // a planted early reading
	if early != 1 {
		t.Error("the test does not notice an early reading")
	}
}

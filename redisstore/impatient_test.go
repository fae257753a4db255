package redisstore

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestImpatientDeadline(t *testing.T) {
	now := time.Now()
	for name, tt := range map[string]struct{ end, until, want time.Time }{
		"of the caller": {end: now.Add(time.Second), until: now.Add(time.Minute), want: now.Add(time.Second)},
		"of patience":   {end: now.Add(time.Minute), until: now.Add(time.Second), want: now.Add(time.Second)},
		"alone":         {until: now.Add(time.Second), want: now.Add(time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if !tt.end.IsZero() {
				var cancel context.CancelFunc
				ctx, cancel = context.WithDeadline(ctx, tt.end)
				defer cancel()
			}
			if got, ok := (impatient{ctx, tt.until}).Deadline(); !ok || !got.Equal(tt.want) {
				t.Errorf("Deadline() = %v, %v, want %v", got, ok, tt.want)
			}
		})
	}
}

// When the caller's own patience is over, the client does not try again under a
// deadline that has passed: each attempt would cost a connection.
func TestImpatienceCostsOneConnection(t *testing.T) {
	server := new(fakeServer)
	s := storeOver(t, server)
	renew := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		_, err := s.Renew(ctx, "key", 1, time.Minute)
		return err
	}
	for range 2 { // the second is the caller's own
		if err := renew(time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	server.silent.Store(true)
	before := server.asked.Load()
	if err := renew(2 * patience); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := s.tasks.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	// One was open, and the request was sent again over another one.
	if n, requests := server.dialed.Load(), server.asked.Load()-before; n != 2 || requests != 2 {
		t.Errorf("%d connections were opened for %d requests, want 2 for 2", n, requests)
	}
}

func TestImpatienceEndsForWhoAsksThen(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	early := impatient{ctx, time.Now().Add(time.Hour)}
	if early.Err() != nil || early.Done() != ctx.Done() {
		t.Errorf("%v before the end", early.Err())
	}
	late := impatient{ctx, time.Now()}
	if !errors.Is(late.Err(), context.DeadlineExceeded) {
		t.Errorf("%v after the end", late.Err())
	}
	<-late.Done()
	cancel(nil)
	if !errors.Is(late.Err(), context.Canceled) || !errors.Is(early.Err(), context.Canceled) {
		t.Errorf("%v, %v after the caller's own end", late.Err(), early.Err())
	}
}

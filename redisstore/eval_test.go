package redisstore

import (
	"context"
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

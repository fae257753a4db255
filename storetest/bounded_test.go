package storetest_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/memstore"
	"github.com/lockfx/lockfx/storetest"
)

// waiting is a store whose Acquire waits for the key, as that of a mutex does.
type waiting struct {
	lockfx.Store
	deaf bool // it waits on when the context has ended
}

func (w waiting) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	for {
		g, err := w.Store.Acquire(context.WithoutCancel(ctx), key, ttl)
		if g.OK || err != nil {
			return g, err
		}
		if !w.deaf && ctx.Err() != nil {
			return lockfx.Grant{}, ctx.Err()
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Over a store whose Acquire waits the kit takes some seconds at most, and says so.
func TestAStoreThatWaitsIsNamed(t *testing.T) {
	for name, deaf := range map[string]bool{"until its context ends": false, "whatever its context says": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				broken := storetest.Check(t.Context(), func() (*storetest.Harness, error) {
					return &storetest.Harness{Store: waiting{memstore.New(), deaf}, TTL: time.Second}, nil
				})
				const fault = "exclusion/acquire-never-waits"
				if names := slices.Collect(maps.Keys(broken)); !slices.Equal(names, []string{fault}) || !strings.Contains(broken[fault].Error(), "waits for the lease to end") {
					t.Errorf("broken: %v", broken)
				}
				if took := time.Since(began); took > 20*time.Second {
					t.Errorf("it took %v", took)
				}
				time.Sleep(time.Hour) // for what waits on
			})
		})
	}
}

// stuck is a store whose renewals do not come back.
type stuck struct {
	lockfx.Store
	deaf bool
}

func (s stuck) Renew(ctx context.Context, _ string, _ lockfx.Token, _ time.Duration) (bool, error) {
	if s.deaf {
		time.Sleep(24 * time.Hour)
	}
	<-ctx.Done()
	return false, ctx.Err()
}

func TestCheckEndsWithItsContext(t *testing.T) {
	for name, deaf := range map[string]bool{"calls end too": false, "calls go on": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				enough := errors.New("enough")
				ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, enough)
				defer cancel()
				broken := storetest.Check(ctx, func() (*storetest.Harness, error) {
					return &storetest.Harness{Store: stuck{memstore.New(), deaf}, TTL: time.Second}, nil
				})
				if ctx.Err() == nil || time.Since(deadline(ctx)) > 30*time.Second {
					t.Errorf("it went on for %v", time.Since(deadline(ctx)))
				}
				if last := storetest.Promises()[len(storetest.Promises())-1]; !errors.Is(broken[last.Name], enough) {
					t.Errorf("%s, which was not tried: %v, want %v", last.Name, broken[last.Name], enough)
				}
				time.Sleep(25 * time.Hour) // for what went on
			})
		})
	}
}

func deadline(ctx context.Context) time.Time {
	d, _ := ctx.Deadline()
	return d
}

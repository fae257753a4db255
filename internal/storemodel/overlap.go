package storemodel

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockfx/lockfx"
)

// Contenders is how many fight for a key.
const Contenders = 8

// resource is what a lock guards. It notices two writers at once, and a writer
// whose token is not greater than the one before.
type resource struct {
	writers atomic.Int32
	seen    atomic.Int64
}

func (r *resource) write(token lockfx.Token) error {
	defer r.writers.Add(-1)
	if n := r.writers.Add(1); n != 1 {
		return fmt.Errorf("%d holders at once", n)
	}
	if seen := r.seen.Swap(int64(token)); seen >= int64(token) {
		return fmt.Errorf("token %v after %d", token, seen)
	}
	runtime.Gosched()
	return nil
}

// Overlap lets Contenders fight for one key until each has held it often enough, and
// returns what the resource noticed that the lock guards.
func Overlap(s lockfx.Store, holds int) error {
	var guarded resource
	contend := func() error {
		ctx := context.Background()
		for held := 0; held < holds; {
			g, err := s.Acquire(ctx, "nightly", time.Hour)
			if err != nil {
				return err
			}
			if !g.OK {
				runtime.Gosched()
				continue
			}
			held++
			if err := guarded.write(g.Token); err != nil {
				return err
			}
			renewed, renewErr := s.Renew(ctx, "nightly", g.Token, time.Hour)
			released, releaseErr := s.Release(ctx, "nightly", g.Token)
			if !renewed || !released || renewErr != nil || releaseErr != nil {
				return fmt.Errorf("renew: %v, release: %v: %w", renewed, released, errors.Join(renewErr, releaseErr))
			}
		}
		return nil
	}
	var all sync.WaitGroup
	faults := make([]error, Contenders)
	for i := range Contenders {
		all.Go(func() {
			// A contender that stops in the middle of a hold must not block the others.
			if faults[i] = contend(); faults[i] != nil {
				if b, ok := s.(lockfx.Breaker); ok {
					_, _ = b.Break(context.Background(), "nightly")
				}
			}
		})
	}
	all.Wait()
	return errors.Join(faults...)
}

// Phantom grants a key to everybody, with tokens of the clock.
type Phantom struct{}

// Acquire grants.
func (Phantom) Acquire(context.Context, string, time.Duration) (lockfx.Grant, error) {
	return lockfx.Grant{OK: true, Token: lockfx.Token(time.Now().UnixMicro())}, nil
}

// Renew says that it did.
func (Phantom) Renew(context.Context, string, lockfx.Token, time.Duration) (bool, error) {
	return true, nil
}

// Release says that it did.
func (Phantom) Release(context.Context, string, lockfx.Token) (bool, error) { return true, nil }

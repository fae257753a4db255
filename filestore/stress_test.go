package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
)

const contenders = 8

// variable is what a lock guards. It notices two writers at once, and a writer
// whose token is not greater than the one before.
type variable struct {
	writers atomic.Int32
	seen    atomic.Int64
}

func (r *variable) write(token lockfx.Token) error {
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

// overlap lets contenders fight for one key until each has held it often enough,
// and returns what the resource noticed.
func overlap(s lockfx.Store, holds int) error {
	var guarded variable
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
	faults := make([]error, contenders)
	for i := range contenders {
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

// phantom grants a key to everybody, with tokens of the clock.
type phantom struct{ lockfx.Store }

func (phantom) Acquire(context.Context, string, time.Duration) (lockfx.Grant, error) {
	return lockfx.Grant{OK: true, Token: lockfx.Token(time.Now().UnixMicro())}, nil
}

func (phantom) Renew(context.Context, string, lockfx.Token, time.Duration) (bool, error) {
	return true, nil
}

func (phantom) Release(context.Context, string, lockfx.Token) (bool, error) { return true, nil }

// crowd is a store of two handles on one directory, each of which serves half of the
// calls.
func crowd(t *testing.T) (lockfx.Store, *clock) {
	s, c, dir := newStore(t)
	return &alternating{handles: [2]*filestore.Store{s, open(t, dir, filestore.WithNow(c.now))}}, c
}

type alternating struct {
	handles [2]*filestore.Store
	calls   atomic.Int64
}

func (a *alternating) next() *filestore.Store { return a.handles[a.calls.Add(1)%2] }

func (a *alternating) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	return a.next().Acquire(ctx, key, ttl)
}

func (a *alternating) Renew(ctx context.Context, key string, token lockfx.Token, ttl time.Duration) (bool, error) {
	return a.next().Renew(ctx, key, token, ttl)
}

func (a *alternating) Release(ctx context.Context, key string, token lockfx.Token) (bool, error) {
	return a.next().Release(ctx, key, token)
}

func (a *alternating) Break(ctx context.Context, key string) (bool, error) {
	return a.next().Break(ctx, key)
}

func TestHoldersNeverOverlap(t *testing.T) {
	s, _ := crowd(t)
	if err := overlap(s, 20); err != nil {
		t.Error(err)
	}
	if overlap(phantom{}, 100_000) == nil {
		t.Error("the test does not notice two holders")
	}
}

// The race detector is the judge here: a hold happens before the next one.
func TestHolderSeesTheWritesOfTheOneBefore(t *testing.T) {
	s, _, _ := newStore(t)
	var all sync.WaitGroup
	written := 0
	for range contenders {
		all.Go(func() {
			for done := 0; done < 50; {
				g, err := s.Acquire(context.Background(), "nightly", time.Hour)
				if err != nil {
					t.Error(err)
					return
				}
				if !g.OK {
					runtime.Gosched()
					continue
				}
				written++
				done++
				release(t, s, "nightly", g.Token, true)
			}
		})
	}
	all.Wait()
	if written != contenders*50 {
		t.Errorf("%d writes are left of %d", written, contenders*50)
	}
}

func TestAllMethodsAtOnce(t *testing.T) {
	s, c, _ := newStore(t)
	var all sync.WaitGroup
	for i := range contenders {
		all.Go(func() {
			for n := range 20 {
				key := fmt.Sprint((i + n) % 3)
				for op, call := range calls(s, lockfx.Token(n)) {
					if err := call(context.Background(), key); err != nil {
						t.Error(op, err)
					}
				}
				c.advance(time.Second)
			}
		})
	}
	all.Wait()
}

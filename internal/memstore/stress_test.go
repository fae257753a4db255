package memstore_test

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
)

const contenders = 8

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

// overlap lets contenders fight for one key until each has held it often enough,
// and returns what the resource noticed.
func overlap(s lockfx.Store, holds int) error {
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
	faults := make([]error, contenders)
	for i := range contenders {
		all.Go(func() {
			// A contender that stops in the middle of a hold must not block the others.
			if faults[i] = contend(); faults[i] != nil {
				_, _ = s.(lockfx.Breaker).Break(context.Background(), "nightly")
			}
		})
	}
	all.Wait()
	return errors.Join(faults...)
}

// phantom grants a key to everybody: a planted fault.
type phantom struct {
	full
	last *atomic.Int64
}

func (p phantom) Acquire(context.Context, string, time.Duration) (lockfx.Grant, error) {
	return lockfx.Grant{OK: true, Token: lockfx.Token(p.last.Add(1))}, nil
}

func (p phantom) Renew(context.Context, string, lockfx.Token, time.Duration) (bool, error) {
	return true, nil
}

func (p phantom) Release(context.Context, string, lockfx.Token) (bool, error) { return true, nil }

func TestHoldersNeverOverlap(t *testing.T) {
	s, _ := newStore()
	if err := overlap(s, 2000); err != nil {
		t.Error(err)
	}
	if overlap(phantom{s, new(atomic.Int64)}, 100_000) == nil {
		t.Error("the test does not notice two holders")
	}
}

// The race detector is the judge here: a hold happens before the next one.
func TestHolderSeesTheWritesOfTheOneBefore(t *testing.T) {
	s, _ := newStore()
	var all sync.WaitGroup
	written := 0
	for range contenders {
		all.Go(func() {
			for done := 0; done < 500; {
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
	if written != contenders*500 {
		t.Errorf("%d writes are left of %d", written, contenders*500)
	}
}

func TestAllMethodsAtOnce(t *testing.T) {
	s, c := newStore()
	var all sync.WaitGroup
	for i := range contenders {
		all.Go(func() {
			for n := range 2000 {
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

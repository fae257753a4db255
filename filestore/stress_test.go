package filestore_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
	"github.com/lockfx/lockfx/internal/storemodel"
)

// crowd is a store of two handles on one directory, each of which serves half of the
// calls.
func crowd(t *testing.T) (lockfx.Store, *storemodel.Clock) {
	s, c, dir := newStore(t)
	return &alternating{handles: [2]*filestore.Store{s, open(t, dir, filestore.WithNow(c.Now))}}, c
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
	if err := storemodel.Overlap(s, 20); err != nil {
		t.Error(err)
	}
	if storemodel.Overlap(storemodel.Phantom{}, 100_000) == nil {
		t.Error("the test does not notice two holders")
	}
}

// The race detector is the judge here: a hold happens before the next one.
func TestHolderSeesTheWritesOfTheOneBefore(t *testing.T) {
	s, _, _ := newStore(t)
	var all sync.WaitGroup
	written := 0
	for range storemodel.Contenders {
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
	if written != storemodel.Contenders*50 {
		t.Errorf("%d writes are left of %d", written, storemodel.Contenders*50)
	}
}

func TestAllMethodsAtOnce(t *testing.T) {
	s, c, _ := newStore(t)
	var all sync.WaitGroup
	for i := range storemodel.Contenders {
		all.Go(func() {
			for n := range 20 {
				key := fmt.Sprint((i + n) % 3)
				for op, call := range calls(s, lockfx.Token(n)) {
					if err := call(context.Background(), key); err != nil {
						t.Error(op, err)
					}
				}
				c.Advance(time.Second)
			}
		})
	}
	all.Wait()
}

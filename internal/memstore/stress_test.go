package memstore_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/storemodel"
)

func TestHoldersNeverOverlap(t *testing.T) {
	s, _ := newStore()
	if err := storemodel.Overlap(s, 2000); err != nil {
		t.Error(err)
	}
	if storemodel.Overlap(storemodel.Phantom{}, 100_000) == nil {
		t.Error("the test does not notice two holders")
	}
}

// The race detector is the judge here: a hold happens before the next one.
func TestHolderSeesTheWritesOfTheOneBefore(t *testing.T) {
	s, _ := newStore()
	var all sync.WaitGroup
	written := 0
	for range storemodel.Contenders {
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
	if written != storemodel.Contenders*500 {
		t.Errorf("%d writes are left of %d", written, storemodel.Contenders*500)
	}
}

func TestAllMethodsAtOnce(t *testing.T) {
	s, c := newStore()
	var all sync.WaitGroup
	for i := range storemodel.Contenders {
		all.Go(func() {
			for n := range 2000 {
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

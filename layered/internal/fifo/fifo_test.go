package fifo_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lockfx/lockfx/layered/internal/fifo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWaitersAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set fifo.Set[string]
		lock(t, &set, "a")
		var served []int
		for i := range 10 {
			go func() {
				lock(t, &set, "a")
				served = append(served, i)
				set.Unlock("a")
			}()
			synctest.Wait()
		}
		if n := set.Waiting("a"); n != 10 {
			t.Errorf("%d wait, want 10", n)
		}
		set.Unlock("a")
		synctest.Wait()
		if !slices.IsSorted(served) || len(served) != 10 {
			t.Errorf("served %v", served)
		}
		if n := set.Len(); n != 0 {
			t.Errorf("%d keys are kept", n)
		}
	})
}

func TestKeysDoNotExcludeEachOther(t *testing.T) {
	var set fifo.Set[string]
	lock(t, &set, "a")
	if set.TryLock("a") {
		t.Error("a was granted twice")
	}
	if !set.TryLock("b") {
		t.Error("b was refused")
	}
	set.Unlock("a")
	if !set.TryLock("a") {
		t.Error("a was refused although it is free")
	}
}

func TestCancelledWaiterLeavesTheLine(t *testing.T) {
	for _, leaver := range []int{0, 1, 2} {
		synctest.Test(t, func(t *testing.T) {
			var set fifo.Set[string]
			lock(t, &set, "a")
			errGone := errors.New("gone")
			var served []int
			var cancels []context.CancelCauseFunc
			for i := range 3 {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				cancels = append(cancels, cancel)
				go func() {
					if err := set.Lock(ctx, "a"); err != nil {
						if !errors.Is(err, errGone) {
							t.Errorf("waiter %d got %v, want the cause", i, err)
						}
						return
					}
					served = append(served, i)
					set.Unlock("a")
				}()
				synctest.Wait()
			}
			cancels[leaver](errGone)
			synctest.Wait()
			if n := set.Waiting("a"); n != 2 {
				t.Errorf("%d wait, want 2", n)
			}
			set.Unlock("a")
			synctest.Wait()
			want := slices.Delete([]int{0, 1, 2}, leaver, leaver+1)
			if !slices.Equal(served, want) {
				t.Errorf("served %v, want %v", served, want)
			}
		})
	}
}

// A waiter that is cancelled in the instant of its grant must pass the key on.
func TestGrantAndCancelAtOnce(t *testing.T) {
	for range 2000 {
		var set fifo.Set[int]
		lock(t, &set, 1)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if set.Lock(ctx, 1) == nil {
				set.Unlock(1)
			}
		})
		wg.Go(func() {
			lock(t, &set, 1)
			set.Unlock(1)
		})
		wg.Go(cancel)
		set.Unlock(1)
		wg.Wait()
		if set.Len() != 0 {
			t.Fatal("the key is still held")
		}
	}
}

func TestGrantToADeadWaiterIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set fifo.Set[string]
		lock(t, &set, "a")
		ctx := &dyingContext{Context: t.Context()}
		got := make(chan error, 1)
		go func() { got <- set.Lock(ctx, "a") }()
		synctest.Wait()
		ctx.dead.Store(true)
		set.Unlock("a")
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Errorf("Lock = %v", err)
		}
		if set.Len() != 0 {
			t.Error("the key was granted to nobody, and is still held")
		}
	})
}

// dyingContext is dead before its Done says so.
type dyingContext struct {
	context.Context
	dead atomic.Bool
}

func (c *dyingContext) Err() error {
	if c.dead.Load() {
		return context.Canceled
	}
	return nil
}

// Value hides the parent, whose cause is asked for otherwise.
func (c *dyingContext) Value(any) any { return nil }

func TestDeadContextGetsNothing(t *testing.T) {
	var set fifo.Set[string]
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := set.Lock(ctx, "a"); !errors.Is(err, context.Canceled) || set.Len() != 0 {
		t.Errorf("Lock = %v with %d keys held", err, set.Len())
	}
}

func TestRandomSchedulesExclude(t *testing.T) {
	const keys, goroutines, rounds = 3, 8, 300
	var set fifo.Set[int]
	var inside [keys]atomic.Int32
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 1))
			for range rounds {
				key := random.IntN(keys)
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(random.IntN(200))*time.Microsecond)
				if set.Lock(ctx, key) == nil {
					if inside[key].Add(1) != 1 {
						t.Errorf("key %d is held twice", key)
					}
					inside[key].Add(-1)
					set.Unlock(key)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if set.Len() != 0 {
		t.Errorf("%d keys are kept", set.Len())
	}
}

func TestUnlockOfAFreeKeyPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	new(fifo.Set[string]).Unlock("a")
}

func TestUncontendedLockAllocatesNothing(t *testing.T) {
	var set fifo.Set[string]
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() {
		if set.Lock(ctx, "a") == nil {
			set.Unlock("a")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func lock[K comparable](t *testing.T, set *fifo.Set[K], key K) {
	t.Helper()
	if err := set.Lock(context.WithoutCancel(t.Context()), key); err != nil {
		t.Error(err)
	}
}

//go:build torture

package fxlock_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// attempts is how often a gate measures before it fails: other programs run on the
// machine, and other goroutines in the runtime.
const attempts = 3

// getters are the reads that a body may make as often as it likes.
type getters interface {
	State() lockfx.State
	Held() bool
	Token() lockfx.Token
}

var (
	_ getters = (*fxlock.Lock)(nil)
	_ getters = lockfx.Holder(nil)
)

// boxed is a planted fault: a getter that allocates.
type boxed struct{ getters }

func (b boxed) Token() lockfx.Token {
	token := b.getters.Token()
	escaped = &token
	return token
}

var escaped *lockfx.Token

// readAll makes a million reads, and returns what they allocated, exactly.
func readAll(g getters) (objects, bytes uint64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 1_000_000 {
		readState, readHeld, readToken = g.State(), g.Held(), g.Token()
	}
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc
}

func allocatesNothing(name string, g getters) error {
	var objects, bytes uint64
	for range attempts {
		if objects, bytes = readAll(g); objects == 0 && bytes == 0 {
			return nil
		}
	}
	return fmt.Errorf("%s: %d objects and %d bytes in a million reads", name, objects, bytes)
}

func TestGateAllocationOfGetters(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx := context.Background()
	newLock := func() *fxlock.Lock {
		lock, err := fxlock.New(fxlock.WithKey("gate"), fxlock.WithTTL(time.Hour), fxlock.WithStore(fxlock.NewMemoryStore()))
		if err != nil {
			t.Fatal(err)
		}
		return lock
	}
	judge := func(name string, g getters) {
		t.Helper()
		if err := allocatesNothing(name, g); err != nil {
			t.Error(err)
		}
	}

	lock := newLock()
	judge("idle lock", lock)
	acquire(ctx, t, lock)
	judge("held lock", lock)
	if err := allocatesNothing("planted", boxed{lock}); err == nil {
		t.Error("a getter that allocates passed")
	}
	release(ctx, t, lock)
	judge("released lock", lock)

	var kept lockfx.Holder
	err := lock.Do(ctx, func(_ context.Context, h lockfx.Holder) error {
		kept = h
		judge("held holder", h)
		judge("lock of a held holder", lock)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	judge("released holder", kept)
	judge("disposed lock", disposed(ctx, t, newLock()))
	t.Log("GATE allocation of getters: State, Held and Token of locks and holders, idle, held, released and disposed: 0 B and 0 objects in a million reads of each; control: a getter that allocates was found")
}

func disposed(ctx context.Context, t *testing.T, lock *fxlock.Lock) *fxlock.Lock {
	t.Helper()
	if err := lock.Dispose(ctx); err != nil {
		t.Fatal(err)
	}
	return lock
}

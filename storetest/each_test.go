package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
)

// What one of many callers meets is not hidden by another one that was too slow.
func TestASlowCallerHidesNoFault(t *testing.T) {
	fault := errors.New("two at once")
	defer func() {
		if b, ok := recover().(broken); !ok || !errors.Is(b.error, fault) {
			t.Errorf("found %v, want %v", b, fault)
		}
	}()
	new(env).each(3, func(i int) {
		if i == 1 {
			panic(broken{fault})
		}
		panic(broken{errTooSlow})
	})
}

// takenOver knows none of its leases any more.
type takenOver struct{ lockfx.Store }

func (takenOver) Release(context.Context, string, lockfx.Token) (bool, error) { return false, nil }

// A lease that has expired is not missed because the key has a younger one.
func TestEachLeaseHasItsOwnEnd(t *testing.T) {
	e := &env{ctx: t.Context()}
	e.leases.note(key, 1, time.Now())
	e.leases.note(key, 2, time.Now().Add(time.Hour))
	for token, want := range map[lockfx.Token]bool{1: true, 2: false} {
		err := func() (err error) {
			defer seen(&err)
			e.release(takenOver{}, key, token, true)
			return nil
		}()
		if err == nil || errors.Is(err, errTooSlow) != want {
			t.Errorf("release of %v: %v, too slow should be %v", token, err, want)
		}
	}
}

package storetest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/memstore"
	"github.com/lockfx/lockfx/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemoryStore(t *testing.T) {
	storetest.Run(t, func() (*storetest.Harness, error) {
		var set time.Duration // by which the clock was set
		s := memstore.New(memstore.WithNow(func() time.Time { return time.Now().Add(set) }))
		return &storetest.Harness{
			Store: s,
			TTL:   100 * time.Millisecond,
			StepClock: func(d time.Duration) error {
				set += d
				return nil
			},
			Wrap:     func(run func()) { synctest.Test(t, func(*testing.T) { run() }) },
			Restart:  restarted,
			LoseData: restarted,
		}, nil
	})
}

// The same in real time, with the cases side by side.
func TestMemoryStoreInParallel(t *testing.T) {
	storetest.RunParallel(t, func() (*storetest.Harness, error) {
		return &storetest.Harness{Store: memstore.New(), TTL: 300 * time.Millisecond}, nil
	})
}

// restarted is a memory store of a later process: some time has passed.
func restarted() (lockfx.Store, error) {
	time.Sleep(time.Millisecond)
	return memstore.New(), nil
}

func BenchmarkMemoryStore(b *testing.B) {
	storetest.Bench(b, func() (*storetest.Harness, error) {
		return &storetest.Harness{Store: memstore.New()}, nil
	})
}

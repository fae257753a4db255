package fxlock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// A program may read its options from a file.
func ExampleDecodeConfig() {
	config, err := fxlock.DecodeConfig(map[string]any{"key": "reports/nightly", "ttl": "1m", "renew_retry": true})
	fmt.Println(config, err)

	_, err = fxlock.DecodeConfig(map[string]any{"tll": "1m", "heartbeat": 20})
	fmt.Println(err)
	// Output:
	// fxlock.Config{Key: "reports/nightly", TTL: 1m0s, RenewRetry: true} <nil>
	// fxlock.DecodeConfig: invalid configuration: option "heartbeat": 20 (int): must be a duration with a unit, such as "30s"
	// fxlock.DecodeConfig: invalid configuration: option "tll": is unknown; did you mean "ttl"?
}

// A Config stands for the options of the same names.
func ExampleConfig() {
	fmt.Println(fxlock.Config{Key: "nightly", TTL: time.Minute, Named: true})
	// Output: fxlock.Config{Key: "nightly", TTL: 1m0s, Named: true}
}

// All faults of a configuration are told at once.
func ExampleNew() {
	_, err := fxlock.New(
		fxlock.WithKey("nightly"),
		fxlock.WithTTL(10*time.Second),
		fxlock.WithHeartbeat(6*time.Second),
		fxlock.WithReleaseTimeout(0),
		fxlock.WithTeardownTimeout(-time.Second),
		fxlock.WithRenewRetry(),
		fxlock.WithClock(lockfx.SystemClock()),
		fxlock.WithLogger(nil),
	)
	fmt.Println(err)
	// Output:
	// fxlock.New("nightly"): invalid configuration: fxlock.WithReleaseTimeout(0s): must be greater than 0
	// fxlock.New("nightly"): invalid configuration: fxlock.WithTeardownTimeout(-1s): must be greater than 0
	// fxlock.New("nightly"): invalid configuration: fxlock.WithLogger(nil): must not be nil; zap.NewNop() is silent
	// fxlock.New("nightly"): invalid configuration: heartbeat 6s must be at most half the ttl of 10s
}

// Options print themselves as they are written; some serve a lock or a single run.
func ExampleOption() {
	ofLock := []fxlock.Option{fxlock.WithKey("nightly"), fxlock.WithTTL(30 * time.Second)}
	ofRun := []fxlock.RunOption{}
	for _, o := range []fxlock.RunOption{fxlock.WithLabel("web-1")} {
		ofLock, ofRun = append(ofLock, o), append(ofRun, o)
	}
	fmt.Println(ofLock, ofRun)
	// Output:
	// [fxlock.WithKey("nightly") fxlock.WithTTL(30s) fxlock.WithLabel("web-1")] [fxlock.WithLabel("web-1")]
}

// A memory store whose time a test moves.
func ExampleMemoryStore() {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	opts := []fxlock.MemoryStoreOption{fxlock.MemoryStoreClock(func() time.Time { return now })}
	free := func(store *fxlock.MemoryStore) bool {
		grant, err := store.Acquire(context.Background(), "nightly", time.Minute)
		return err == nil && grant.OK
	}
	store := fxlock.NewMemoryStore(opts...)
	fmt.Println(free(store), free(store))
	now = now.Add(time.Minute)
	fmt.Println(free(store))
	// Output:
	// true false
	// true
}

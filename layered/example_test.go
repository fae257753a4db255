package layered_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/layered"
)

func ExampleWithLock() {
	type report struct{ Name string }

	res, err := layered.WithLock(context.Background(), report{"nightly"},
		func(_ context.Context, call layered.Call[report]) (int, error) {
			fmt.Printf("%s: %s\n", call.State, call.Input.Name)
			return 42, nil
		},
		layered.WithNamespace("reports"),
	)
	fmt.Println(res.Value, err)
	fmt.Println("memory", res.Lock.Memory.Outcome)
	fmt.Println("poll", res.Lock.Poll.Outcome, "since", res.Lock.Poll.Reason)
	// Output:
	// executed: nightly
	// 42 <nil>
	// memory on
	// poll skipped since flock is held
}

// The work is done once, however many ask for it: who had to wait looks again.
func ExampleWithPredicate() {
	done := false
	for range 2 {
		res, err := layered.WithLock(context.Background(), "thumbnail.png",
			func(context.Context, layered.Call[string]) (struct{}, error) {
				done = true
				return struct{}{}, nil
			},
			layered.WithPredicate(func(context.Context, layered.Call[string]) (bool, error) { return !done, nil }),
			layered.WithOnCheckFailed(func(_ context.Context, call layered.Call[string]) error {
				fmt.Println(call.Input, "is there already")
				return nil
			}),
		)
		fmt.Println(res.State, err)
	}
	// Output:
	// executed <nil>
	// thumbnail.png is there already
	// predicate-before <nil>
}

// Zero is one attempt, without any sleep.
func ExampleWithTimeoutResult() {
	attempt := func() (layered.State, error) {
		res, err := layered.WithLock(context.Background(), 0,
			func(context.Context, layered.Call[int]) (struct{}, error) { return struct{}{}, nil },
			layered.WithKey("nightly"), layered.WithTimeoutResult(0))
		return res.State, err
	}
	_, err := layered.WithLock(context.Background(), 0,
		func(context.Context, layered.Call[int]) (struct{}, error) {
			fmt.Println(attempt()) // of another caller
			return struct{}{}, nil
		},
		layered.WithKey("nightly"))
	fmt.Println(err)
	fmt.Println(attempt())
	// Output:
	// timeout <nil>
	// <nil>
	// executed <nil>
}

func ExampleWithTimeout() {
	nothing := func(context.Context, layered.Call[int]) (struct{}, error) { return struct{}{}, nil }
	_, err := layered.WithLock(context.Background(), 0,
		func(context.Context, layered.Call[int]) (struct{}, error) {
			// Another caller: with the context of this one it would be refused at once.
			_, err := layered.WithLock(context.Background(), 0, nothing, layered.WithKey("nightly"), layered.WithTimeout(time.Millisecond))
			var timeout *layered.TimeoutError
			if errors.As(err, &timeout) {
				fmt.Println(timeout.Key, timeout.Layer, errors.Is(err, lockfx.ErrTimeout))
			}
			return struct{}{}, nil
		}, layered.WithKey("nightly"))
	fmt.Println(err)
	// Output:
	// nightly memory true
	// <nil>
}

// Only processes are put in order, by the portable lock alone: as it is on a file
// system without locks of its own.
func ExampleWithScope() {
	dir, err := os.MkdirTemp("", "locks")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is an example
	res, err := layered.WithLock(context.Background(), 0,
		func(_ context.Context, call layered.Call[int]) (bool, error) {
			info, err := os.Stat(call.Lock.File + ".lock")
			return err == nil && info.IsDir(), nil
		},
		layered.WithKey("nightly"), layered.WithDir(dir),
		layered.WithScope(layered.Scope{Memory: layered.Off, Worker: layered.Off, Flock: layered.Off}))
	fmt.Println(res.Value, res.Lock.Poll.Outcome, err)
	// Output: true on <nil>
}

func ExampleNew() {
	locker, err := layered.New(
		layered.WithNamespace("reports"),
		layered.WithTimeout(-time.Second),
		layered.WithStale(time.Second),
	)
	fmt.Println(locker)
	fmt.Println(err)
	// Output:
	// <nil>
	// invalid configuration: layered.WithTimeout(-1s): must not be negative
	// invalid configuration: layered.WithStale(1s): must be at least 2s
}

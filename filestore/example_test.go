package filestore_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
)

func Example() {
	dir, err := os.MkdirTemp("", "locks")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir) //nolint:errcheck // an example

	// Each process opens a store over the same directory.
	mine, err := filestore.New(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	theirs, err := filestore.New(dir)
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := lockfx.WithLabel(context.Background(), "web-1/4711/reports")
	first, _ := mine.Acquire(ctx, "nightly", time.Minute)
	refused, _ := theirs.Acquire(ctx, "nightly", time.Minute)
	fmt.Println("granted:", first.OK)
	fmt.Println("granted:", refused.OK, "held by:", refused.HeldBy)

	released, _ := mine.Release(ctx, "nightly", first.Token)
	second, _ := theirs.Acquire(ctx, "nightly", time.Minute)
	fmt.Println("released:", released)
	fmt.Println("granted:", second.OK, "with a greater token:", second.Token > first.Token)
	// Output:
	// granted: true
	// granted: false held by: web-1/4711/reports
	// released: true
	// granted: true with a greater token: true
}

func ExampleWithPolling() {
	fmt.Println(filestore.WithPolling(50 * time.Millisecond))
	// Output: filestore.WithPolling(50ms)
}

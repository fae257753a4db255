package memoize_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockfx/lockfx/memoize"
)

func ExampleFunc() {
	tries := 0
	catalog := memoize.Func(func(context.Context) ([]string, error) {
		tries++
		if tries == 1 {
			return nil, errors.New("catalog server is starting")
		}
		return []string{"spade", "bucket"}, nil
	})

	ctx := context.Background()
	for range 3 {
		fmt.Println(catalog(ctx))
	}
	fmt.Println("tries:", tries)
	// Output:
	// [] catalog server is starting
	// [spade bucket] <nil>
	// [spade bucket] <nil>
	// tries: 2
}

func ExampleValue() {
	region := memoize.Value(func() (string, error) {
		fmt.Println("reading the configuration")
		return "us-east-1", nil
	})

	fmt.Println(region())
	fmt.Println(region())
	// Output:
	// reading the configuration
	// us-east-1 <nil>
	// us-east-1 <nil>
}

func ExampleFunc_callingItself() {
	var total func(context.Context) (int, error)
	total = memoize.Func(func(ctx context.Context) (int, error) {
		sum, err := total(ctx)
		return sum + 1, err
	})

	_, err := total(context.Background())
	fmt.Println(errors.Is(err, memoize.ErrReentrant))
	// Output: true
}

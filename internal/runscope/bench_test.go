package runscope_test

import (
	"context"
	"reflect"
	"testing"

	"go.uber.org/dig"

	"github.com/lockfx/lockfx"
)

// BenchmarkOpen is one run of a body that takes a value of the application and the
// token, through a plan and by hand over bare dig.
func BenchmarkOpen(b *testing.B) {
	for name, run := range map[string]func(){"plan": planned(b), "bare": bare(b)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
		})
	}
}

// TestPlanAllocatesLikeBareDig guards the price of a plan.
func TestPlanAllocatesLikeBareDig(t *testing.T) {
	ours := testing.AllocsPerRun(200, planned(t))
	theirs := testing.AllocsPerRun(200, bare(t))
	t.Logf("%v allocations a run, and %v over bare dig", ours, theirs)
	if ours > 1.2*theirs {
		t.Errorf("%v allocations a run; bare dig takes %v", ours, theirs)
	}
}

func benchBody(context.Context, *DB, lockfx.Token) {}

// planned returns one run through a plan.
func planned(tb testing.TB) func() {
	source := world{app: []any{newApp}}.source(tb, benchBody)
	call := reflect.ValueOf(benchBody)
	return func() {
		scope, err := source.Open(runValues(1, nil))
		if err != nil {
			tb.Fatal(err)
		}
		args, err := scope.Args()
		if err != nil {
			tb.Fatal(err)
		}
		call.Call(args)
		scope.Close()
	}
}

// bare returns the same run as one would write it over dig.
func bare(tb testing.TB) func() {
	db := &DB{Name: "app"}
	return func() {
		ctx, token := context.Background(), lockfx.Token(1)
		root := dig.New(dig.DeferAcyclicVerification())
		scope := root.Scope("run")
		for _, err := range []error{
			root.Provide(func() *DB { return db }),
			scope.Provide(func() (context.Context, lockfx.Token) { return ctx, token }),
			scope.Invoke(benchBody),
		} {
			if err != nil {
				tb.Fatal(err)
			}
		}
	}
}

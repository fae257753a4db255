package runscope_test

import (
	"context"
	"reflect"
	"testing"

	"go.uber.org/dig"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/runscope"
)

// BenchmarkOpen is one run of a body that takes a value of the application and the
// token, through a plan and by hand over bare dig.
func BenchmarkOpen(b *testing.B) {
	db := &DB{Name: "app"}
	body := func(context.Context, *DB, lockfx.Token) {}

	b.Run("plan", func(b *testing.B) {
		plan, err := runscope.Compile(runscope.Spec{Body: reflect.TypeOf(body), Run: runKeys})
		if err != nil {
			b.Fatal(err)
		}
		source, missing := plan.BindShared(map[runscope.Key]reflect.Value{key[*DB](): reflect.ValueOf(db)})
		if missing != nil {
			b.Fatal(missing)
		}
		call := reflect.ValueOf(body)
		b.ReportAllocs()
		for b.Loop() {
			scope, err := source.Open(runValues(1, nil))
			if err != nil {
				b.Fatal(err)
			}
			args, err := scope.Args()
			if err != nil {
				b.Fatal(err)
			}
			call.Call(args)
			scope.Close()
		}
	})

	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ctx, token := context.Background(), lockfx.Token(1)
			root := dig.New(dig.DeferAcyclicVerification())
			if err := root.Provide(func() *DB { return db }); err != nil {
				b.Fatal(err)
			}
			scope := root.Scope("run")
			if err := scope.Provide(func() (context.Context, lockfx.Token) { return ctx, token }); err != nil {
				b.Fatal(err)
			}
			if err := scope.Invoke(body); err != nil {
				b.Fatal(err)
			}
		}
	})
}

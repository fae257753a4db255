package fxlock_test

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// One replica leads; the others stand by. The stop of the leader hands over.
func ExampleLead() {
	type Queue struct{}
	elected := make(chan string)
	replica := func(name string, store lockfx.Store) *fx.App {
		return fx.New(fx.NopLogger, fx.Supply(&Queue{}),
			fxlock.Module("dispatcher", fxlock.WithStore(store),
				fxlock.Lead(func(ctx context.Context, _ *Queue, _ lockfx.Token) error {
					elected <- name
					<-ctx.Done() // work on the queue, under the fence, until the term ends
					return context.Cause(ctx)
				})))
	}
	ctx, store := context.Background(), fxlock.NewMemoryStore()
	one, two := replica("one", store), replica("two", store)
	fmt.Println(one.Start(ctx), <-elected)
	fmt.Println(two.Start(ctx))
	fmt.Println(one.Stop(ctx), <-elected)
	fmt.Println(two.Stop(ctx))
	// Output:
	// <nil> one
	// <nil>
	// <nil> two
	// <nil>
}

// A Leadership tells the rest of the application what becomes of the campaign. Its
// Check suits most health endpoints.
func ExampleLeadership() {
	var leadership *fxlock.Leadership
	stoodDown := make(chan struct{})
	opts := []fxlock.LeadOption{fxlock.TermPause(time.Minute), fxlock.OneTerm()}
	inApp(func(ctx context.Context) {
		<-stoodDown
		fmt.Println(leadership.Check(ctx), leadership.IsLeader(), leadership.Token())
		lease, err := leadership.Leader(ctx)
		fmt.Println(lease.Token, err)
	},
		fxlock.Module("vacuum", fxlock.WithStore(fxlock.NewMemoryStore()),
			fxlock.Lead(func() { fmt.Println("vacuum once") }, opts...)),
		fx.Populate(&leadership),
		fx.Invoke(func(l *fxlock.Leadership) {
			l.Subscribe(func(e fxlock.LeadershipEvent) {
				switch e.Change {
				case fxlock.StandingBy, fxlock.Elected, fxlock.TermEnded:
					fmt.Println(e.Change, e.Err)
				case fxlock.StoodDown:
					close(stoodDown)
				}
			})
		}))
	for _, change := range []fxlock.LeadershipChange{fxlock.TermEnded, fxlock.StoodDown} {
		fmt.Println("a change:", change)
	}
	// Output:
	// standing by <nil>
	// elected <nil>
	// vacuum once
	// term ended <nil>
	// <nil> false 0
	// 0 <nil>
	// a change: term ended
	// a change: stood down
}

// A migration runs under a lock before the servers open: replicas that start
// together run it one at a time, and only as long as it is needed.
func ExampleOnStart() {
	type Migrated struct{}
	type Schema struct{ version int }
	type Server struct{}

	inApp(func(context.Context) { fmt.Println("started") },
		fx.Supply(&Schema{version: 1}),
		fxlock.Module("migrations", fxlock.WithStore(fxlock.NewMemoryStore()),
			fxlock.OnStart[Migrated](
				func(schema *Schema, _ lockfx.Token) {
					schema.version = 2
					fmt.Println("migrate")
				},
				fxlock.If(func(schema *Schema) bool { return schema.version < 2 }))),
		fx.Provide(func(lc fx.Lifecycle, _ Migrated, schema *Schema) *Server {
			fmt.Println("constructors still see version", schema.version)
			lc.Append(fx.StartHook(func() { fmt.Println("open with version", schema.version) }))
			return new(Server)
		}),
		fx.Invoke(func(*Server) {}))
	// Output:
	// constructors still see version 1
	// migrate
	// open with version 2
	// started
}

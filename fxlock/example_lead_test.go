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

// A Leadership tells the rest of the application what becomes of the campaign, and has a
// check for each probe.
func ExampleLeadership() {
	var leadership *fxlock.Leadership
	stoodDown := make(chan struct{})
	opts := []fxlock.LeadOption{fxlock.TermPause(time.Minute), fxlock.OneTerm()}
	inApp(func(ctx context.Context) {
		<-stoodDown
		fmt.Println("live:", leadership.Live(ctx))
		fmt.Println("ready:", leadership.Ready(ctx))
		fmt.Println("in order:", leadership.Check(ctx))
		lease, err := leadership.Leader(ctx)
		fmt.Println("led by token", lease.Token, err)
	},
		fxlock.Module("vacuum", fxlock.WithStore(fxlock.NewMemoryStore()),
			fxlock.Lead(func() { /* vacuum once */ }, opts...)),
		fx.Populate(&leadership),
		fx.Invoke(func(l *fxlock.Leadership) {
			l.Subscribe(func(e fxlock.LeadershipEvent) {
				fmt.Println(e.Change, e.Err)
				if e.Change == fxlock.LeadershipStoodDown {
					close(stoodDown)
				}
			})
		}))
	// Output:
	// standing by <nil>
	// elected <nil>
	// term ended <nil>
	// stood down <nil>
	// live: <nil>
	// ready: <nil>
	// in order: <nil>
	// led by token 0 <nil>
}

// A leader works on what a migration has prepared, so it says that it begins after it.
func ExampleAfter() {
	type Migrated struct{}
	leads := make(chan struct{})
	store := fxlock.NewMemoryStore()
	dispatcher := fxlock.Module("dispatcher", fxlock.WithStore(store), fxlock.Named(),
		fxlock.Lead(func() {
			fmt.Println("dispatch")
			close(leads)
		}, fxlock.OneTerm(), fxlock.After[Migrated]()))
	migrations := fxlock.Module("migrations", fxlock.WithStore(store), fxlock.Named(),
		fxlock.OnStart[Migrated](func() { fmt.Println("migrate") }))

	fmt.Println(fxlock.Validate(dispatcher, migrations))
	inApp(func(context.Context) { <-leads }, dispatcher, migrations)
	// Output:
	// <nil>
	// migrate
	// dispatch
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

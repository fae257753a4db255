package runscope_test

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"go.uber.org/dig"
	"go.uber.org/goleak"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/runscope"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	// DB stands for a value of the application.
	DB struct{ Name string }
	// Cache stands for one that the application may not have.
	Cache struct{ Name string }
	// Writer stands for what is built once per run.
	Writer struct {
		DB    *DB
		Token lockfx.Token
	}
	// Hand stands for the by-hand resolver.
	Hand struct{ scope *runscope.Scope }
)

func newWriter(db *DB, token lockfx.Token) *Writer { return &Writer{DB: db, Token: token} }

func key[T any]() runscope.Key { return runscope.Key{Type: reflect.TypeFor[T]()} }

func named[T any](name string) runscope.Key {
	return runscope.Key{Type: reflect.TypeFor[T](), Name: name}
}

func group[T any](name string) runscope.Key {
	return runscope.Key{Type: reflect.TypeFor[T](), Group: name}
}

// runKeys are what a run binds in these tests.
var runKeys = []runscope.Key{
	key[context.Context](), key[lockfx.Token](), named[lockfx.Token]("lock:fence"), key[*Hand](),
}

func runValues(token lockfx.Token, hand *Hand) []reflect.Value {
	return []reflect.Value{
		reflect.ValueOf(context.Background()), reflect.ValueOf(token), reflect.ValueOf(token), reflect.ValueOf(hand),
	}
}

// world is an application and what a lock in it adds.
type world struct {
	app    []any // constructors of the application
	ctors  []runscope.Ctor
	shared []runscope.Key
}

func perRun(fns ...any) []runscope.Ctor {
	ctors := make([]runscope.Ctor, len(fns))
	for i, fn := range fns {
		ctors[i] = runscope.Ctor{Build: func() (any, error) { return fn, nil }}
	}
	return ctors
}

func (w world) spec(body any) runscope.Spec {
	return runscope.Spec{
		Body: reflect.TypeOf(body), Run: runKeys, Ctors: w.ctors,
		Shared: w.shared, Hand: reflect.TypeFor[*Hand](),
	}
}

func (w world) compile(t testing.TB, body any) *runscope.Plan {
	t.Helper()
	plan, err := runscope.Compile(w.spec(body))
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	return plan
}

// source resolves the plan's leaves from a container, as fx does.
func (w world) source(t testing.TB, body any) *runscope.Source {
	t.Helper()
	plan := w.compile(t, body)
	app := dig.New()
	for _, fn := range w.app {
		if err := app.Provide(fn); err != nil {
			t.Fatal(err)
		}
	}
	var source *runscope.Source
	gather := reflect.MakeFunc(reflect.FuncOf([]reflect.Type{plan.In()}, nil, false),
		func(in []reflect.Value) []reflect.Value { source = plan.Bind(in[0]); return nil })
	if err := app.Invoke(gather.Interface()); err != nil {
		t.Fatalf("gather the leaves: %v", err)
	}
	return source
}

// open opens a scope of its own for a body, and closes it with the test.
func (w world) open(t testing.TB, body any, token lockfx.Token) *runscope.Scope {
	t.Helper()
	return open(t, w.source(t, body), token)
}

func open(t testing.TB, source *runscope.Source, token lockfx.Token) *runscope.Scope {
	t.Helper()
	hand := new(Hand)
	scope, err := source.Open(runValues(token, hand))
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	hand.scope = scope
	t.Cleanup(func() { scope.Close() })
	return scope
}

// run calls body once in a scope of its own.
func (w world) run(t testing.TB, body any, token lockfx.Token) {
	t.Helper()
	call(t, w.open(t, body, token), body)
}

func call(t testing.TB, scope *runscope.Scope, body any) {
	t.Helper()
	args, err := scope.Args()
	if err != nil {
		t.Fatalf("resolve: %v", err)
	}
	reflect.ValueOf(body).Call(args)
}

// byHand resolves the parameters of f, and calls it.
func byHand(scope *runscope.Scope, f any) error {
	args, err := scope.Resolve(reflect.TypeOf(f))
	if err == nil {
		reflect.ValueOf(f).Call(args)
	}
	return err
}

// sameElements reports whether a group has exactly these values; its order means
// nothing.
func sameElements(got []string, want ...string) bool {
	return slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want)))
}

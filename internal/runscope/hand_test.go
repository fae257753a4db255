package runscope_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"go.uber.org/dig"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/runscope"
)

func TestHandBringsEverything(t *testing.T) {
	type in struct {
		dig.In
		Main  *DB      `name:"main"`
		Steps []string `group:"steps"`
		Cache *Cache   `optional:"true"`
	}
	built := 0
	w := world{
		app:    []any{newApp},
		ctors:  perRun(func(db *DB, token lockfx.Token) *Writer { built++; return newWriter(db, token) }),
		shared: []runscope.Key{named[*DB]("main"), group[string]("steps"), key[*Writer]()},
	}
	for what, body := range map[string]any{
		"body":        func(*Hand) {},
		"constructor": func([]byte) {},
	} {
		t.Run(what, func(t *testing.T) {
			built = 0
			w := w
			if what == "constructor" {
				w.ctors = append(perRun(func(*Hand) []byte { return nil }), w.ctors...)
			}
			plan := w.compile(t, body)
			for i := range runKeys {
				if !plan.Wants(i) {
					t.Errorf("%v is not wanted", runKeys[i])
				}
			}
			scope := w.open(t, body, 5)
			call(t, scope, body)
			if built != 0 {
				t.Error("a constructor was built before it was asked for")
			}
			err := byHand(scope, func(ctx context.Context, writer *Writer, again *Writer, p in) {
				if ctx == nil || writer != again || writer.Token != 5 || p.Main.Name != "main" || !sameElements(p.Steps, "a", "b", "c") {
					t.Errorf("by hand: %v %v %v", ctx, writer, p)
				}
			})
			if err != nil || built != 1 {
				t.Errorf("by hand: %v after %d builds", err, built)
			}
		})
	}
}

func TestWithoutHand(t *testing.T) {
	w := world{app: []any{newApp}, ctors: perRun(newWriter), shared: []runscope.Key{key[*Cache]()}}
	plan := w.compile(t, func(*DB, lockfx.Token) {})
	if leaves := plan.Leaves(); len(leaves) != 1 || leaves[0] != (runscope.Leaf{Key: key[*DB]()}) {
		t.Errorf("leaves: %v", leaves)
	}
	for i, want := range []bool{false, true, false, false} {
		if plan.Wants(i) != want {
			t.Errorf("%v is wanted: %v", runKeys[i], !want)
		}
	}
}

func TestResolveRefuses(t *testing.T) {
	type in struct {
		dig.In
		Main  *DB   `name:"main"`
		Steps []int `group:"steps"`
	}
	w := world{app: []any{newApp}, ctors: perRun(newWriter)}
	scope := w.open(t, func(*DB, *Hand) {}, 1)

	err := byHand(scope, func(*DB, *Cache, in) {})
	var missing *runscope.MissingError
	want := `not bound in this scope: *runscope_test.Cache, *runscope_test.DB[name="main"], int[group="steps"]`
	if !errors.As(err, &missing) || err.Error() != want || len(missing.Keys) != 3 {
		t.Errorf("got %v\nwant %s", err, want)
	}
	for _, fn := range []reflect.Type{nil, reflect.TypeFor[int](), reflect.TypeFor[func(*in)]()} {
		if _, err := scope.Resolve(fn); err == nil || !strings.HasPrefix(err.Error(), "resolve the parameters of ") {
			t.Errorf("%v: %v", fn, err)
		}
	}
	scope.Close()
	for _, fn := range []any{func(*DB) {}, func(*Cache) {}} {
		if err := byHand(scope, fn); !errors.Is(err, runscope.ErrClosed) {
			t.Errorf("after the run: %v", err)
		}
	}
	if _, err := scope.Args(); !errors.Is(err, runscope.ErrClosed) {
		t.Errorf("after the run: %v", err)
	}
	scope.Close()
}

// What the body may do without is a zero value there. Who insists on it by hand is
// told that it is not to be had.
func TestResolveKnowsWhatIsAbsent(t *testing.T) {
	type optional struct {
		dig.In
		Cache *Cache `optional:"true"`
	}
	body := func(*Hand, optional) {}
	insists := func(c *Cache) {
		if c == nil {
			t.Error("a constructor of nothing gave nil")
		}
	}
	scope := world{}.open(t, body, 1)
	var missing *runscope.MissingError
	if err := byHand(scope, insists); !errors.As(err, &missing) {
		t.Errorf("without a cache: %v", err)
	}
	if err := byHand(scope, func(optional) {}); err != nil {
		t.Errorf("without a cache, and without insisting: %v", err)
	}
	scope = world{app: []any{func() *Cache { return new(Cache) }}}.open(t, body, 1)
	if err := byHand(scope, insists); err != nil {
		t.Errorf("with a cache: %v", err)
	}
	scope = world{app: []any{func() *Cache { return nil }}}.open(t, func(*Hand, *Cache) {}, 1)
	if err := byHand(scope, func(*Cache) {}); err != nil {
		t.Errorf("with a cache that is nil, as the application wants it: %v", err)
	}
}

func TestResolveFromManyGoroutines(t *testing.T) {
	built := 0
	w := world{app: []any{newApp}, ctors: perRun(func(db *DB, token lockfx.Token) *Writer {
		built++ // unguarded on purpose: the scope builds one thing at a time
		return newWriter(db, token)
	})}
	scope := w.open(t, func(*Hand) {}, 1)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if err := byHand(scope, func(*Writer) {}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if built != 1 {
		t.Errorf("%d writers were built", built)
	}
}

// TestResolveInsideConstructor would hang if a constructor could wait for the scope
// that is building it.
func TestResolveInsideConstructor(t *testing.T) {
	w := world{app: []any{newApp}, ctors: perRun(func(hand *Hand) (*Writer, error) {
		return nil, byHand(hand.scope, func(*DB) {})
	})}
	_, err := w.open(t, func(*Writer) {}, 1).Args()
	if !errors.Is(err, runscope.ErrReentrant) {
		t.Errorf("while the body's arguments are built: %v", err)
	}
	if err := byHand(w.open(t, func(*Hand) {}, 1), func(*Writer) {}); !errors.Is(err, runscope.ErrReentrant) {
		t.Errorf("while another is resolved by hand: %v", err)
	}
}

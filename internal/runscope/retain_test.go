package runscope_test

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"testing"
	"weak"

	"go.uber.org/dig"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/runscope"
)

type retainIn struct {
	dig.In
	Writer *Writer
	Steps  []*Writer `group:"steps"`
}

// retained makes many runs, and says what is left of them once they are over.
func retained(runs int, run func(lockfx.Token) *Writer) error {
	const batch = 1000
	run(0) // what is made once for all runs is not counted
	before := heap()
	for first := 0; first < runs; first += batch {
		built := make([]weak.Pointer[Writer], batch)
		for i := range built {
			built[i] = weak.Make(run(lockfx.Token(first + i + 1)))
		}
		runtime.GC()
		alive := 0
		for _, w := range built {
			if w.Value() != nil {
				alive++
			}
		}
		if alive > 0 {
			return fmt.Errorf("%d values of %d finished runs are still alive", alive, batch)
		}
	}
	if grown := heap() - before; grown > int64(runs)*maxPerRun {
		return fmt.Errorf("%d runs left %d bytes behind", runs, grown)
	}
	return nil
}

// maxPerRun is what a run may leave behind, in bytes: less than the smallest thing
// that could be kept for each.
const maxPerRun = 8

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func newStep(w *Writer) *Writer { return &Writer{DB: w.DB, Token: w.Token} }

func TestRunsLeaveNothingBehind(t *testing.T) {
	w := world{app: []any{newApp}, ctors: perRun(newWriter, newStep)}
	w.ctors[1].Group = "steps"
	source := w.source(t, func(retainIn, *Hand) {})
	runs := manyRuns
	if testing.Short() {
		runs = 2000
	}
	err := retained(runs, func(token lockfx.Token) *Writer {
		hand := new(Hand)
		scope, err := source.Open(runValues(token, hand))
		if err != nil {
			t.Fatal(err)
		}
		hand.scope = scope
		args, err := scope.Args()
		if err != nil {
			t.Fatal(err)
		}
		scope.Close()
		in := args[0].Interface().(retainIn)
		if in.Writer.Token != token || len(in.Steps) != 1 {
			t.Fatalf("run %v: %v", token, in)
		}
		return in.Steps[0]
	})
	if err != nil {
		t.Error(err)
	}
}

// TestLongLivedContainerIsFound plants what this package avoids: children of one
// container that lives on.
func TestLongLivedContainerIsFound(t *testing.T) {
	root := dig.New(dig.DeferAcyclicVerification())
	if err := root.Provide(func() *DB { return new(DB) }); err != nil {
		t.Fatal(err)
	}
	err := retained(1000, func(token lockfx.Token) *Writer {
		scope := root.Scope("run")
		var out *Writer
		for _, err := range []error{
			scope.Provide(func() lockfx.Token { return token }),
			scope.Provide(newWriter),
			scope.Provide(newStep, dig.Group("steps")),
			scope.Invoke(func(in retainIn) { out = in.Steps[0] }),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		return out
	})
	if err == nil {
		t.Error("a container that keeps every run passed")
	}
	t.Log(err)
}

// TestKeptHandHoldsNothing checks that a resolver which outlives its run does not
// keep what the run built.
func TestKeptHandHoldsNothing(t *testing.T) {
	w := world{app: []any{newApp}, ctors: perRun(newWriter)}
	source := w.source(t, func(*Writer, *Hand) {})
	kept := new(Hand)
	built := func() weak.Pointer[Writer] {
		scope, err := source.Open(runValues(1, kept))
		if err != nil {
			t.Fatal(err)
		}
		kept.scope = scope
		args, err := scope.Args()
		if err != nil {
			t.Fatal(err)
		}
		defer scope.Close()
		return weak.Make(args[0].Interface().(*Writer))
	}()
	runtime.GC()
	if built.Value() != nil {
		t.Error("a closed scope keeps what it built")
	}
	if _, err := kept.scope.Resolve(reflect.TypeFor[func()]()); !errors.Is(err, runscope.ErrClosed) {
		t.Errorf("after the run: %v", err)
	}
}

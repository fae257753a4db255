package graph_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx/fxlock/internal/graph"
)

func plain(name string) error { return errors.New(name) }

func TestBuildOpensWhatAnnotateReturns(t *testing.T) {
	v := fx.Annotate(func(name string) (int, error) { return len(name), nil }, fx.ParamTags(`name:"n"`))
	if !graph.IsAnnotated(v) {
		t.Fatal("what fx.Annotate returns is not known")
	}
	built, err := graph.Build(v)
	if err != nil {
		t.Fatal(err)
	}
	in := reflect.TypeOf(built).In(0)
	if tag := in.Field(1).Tag.Get("name"); in.Kind() != reflect.Struct || tag != "n" {
		t.Errorf("built %T", built)
	}
	if got := reflect.TypeOf(graph.Target(v)); got != reflect.TypeOf(func(string) (int, error) { return 0, nil }) {
		t.Errorf("the target is a %v", got)
	}
}

func TestAnythingElseIsReturnedAsItIs(t *testing.T) {
	type own struct{}
	for _, v := range []any{nil, 7, own{}, fx.Annotated{Name: "n"}, fx.Hook{}} {
		built, err := graph.Build(v)
		if graph.IsAnnotated(v) || err != nil || !reflect.DeepEqual(built, v) || !reflect.DeepEqual(graph.Target(v), v) {
			t.Errorf("Build(%T) = %v, %v", v, built, err)
		}
	}
}

func TestFaultTellsWhatAnnotateHides(t *testing.T) {
	bad := fx.Annotate(plain, fx.ParamTags("no tag"))
	if err := graph.Fault(bad); err == nil || !strings.Contains(err.Error(), "tag") {
		t.Errorf("the fault is %v", err)
	}
	if _, err := graph.Build(bad); err == nil {
		t.Error("what is faulty was built")
	}
	if graph.IsAnnotated(bad) {
		t.Error("a fault is taken for a constructor")
	}
	if err := graph.Fault(fx.Annotate(plain)); err != nil {
		t.Error(err)
	}
	if _, err := graph.Build(fx.Annotate(7)); err == nil {
		t.Error("a number was built")
	}
}

// Errors of fx name the place that was given, not a function made by reflection.
func TestLocatedNamesAPlace(t *testing.T) {
	type value struct{}
	made := func() any {
		f := reflect.MakeFunc(reflect.TypeFor[func(struct{ missing int }) *value](),
			func([]reflect.Value) []reflect.Value { return []reflect.Value{reflect.ValueOf(new(value))} })
		return f.Interface()
	}()
	pc := reflect.ValueOf(plain).Pointer()
	app := fx.New(fx.NopLogger, fx.Provide(graph.Located(made, pc)), fx.Invoke(func(*value) {}))
	if err := app.Err(); err == nil || !strings.Contains(err.Error(), `graph_test".plain`) {
		t.Errorf("the error names no place: %v", err)
	}
	bad := graph.Located(plain, pc, fx.ResultTags("no tag"))
	if graph.Fault(bad) == nil {
		t.Errorf("%T is no fault", bad)
	}
}

package runscope_test

import (
	"context"
	"reflect"
	"testing"

	"go.uber.org/dig"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/runscope"
)

type (
	params struct {
		dig.In
		Ctx   context.Context
		Fence lockfx.Token `name:"lock:fence"`
		Main  *DB          `name:"main"`
		Cache *Cache       `optional:"true"`
		Steps []string     `group:"steps"`
	}
	Outer struct {
		dig.In
		Inner params
		DB    *DB
	}
	embedded struct {
		Outer
		Token lockfx.Token
	}
	appValues struct {
		dig.Out
		DB   *DB
		Main *DB      `name:"main"`
		One  string   `group:"steps"`
		More []string `group:"steps,flatten"`
	}
)

func newApp() appValues {
	return appValues{DB: &DB{"db"}, Main: &DB{"main"}, One: "a", More: []string{"b", "c"}}
}

func TestEveryKindOfParameter(t *testing.T) {
	w := world{app: []any{newApp}}
	called := false
	w.run(t, func(ctx context.Context, all embedded, plain params, token lockfx.Token, _ ...int) error {
		called = true
		for _, p := range []params{all.Inner, plain} {
			switch {
			case p.Ctx != ctx || ctx == nil:
				t.Errorf("context: %v", p.Ctx)
			case p.Fence != 7 || token != 7 || all.Token != 7:
				t.Errorf("tokens: %v %v %v", p.Fence, token, all.Token)
			case p.Main.Name != "main" || all.DB.Name != "db":
				t.Errorf("values: %v %v", p.Main, all.DB)
			case p.Cache != nil:
				t.Errorf("absent optional: %v", p.Cache)
			case !sameElements(p.Steps, "a", "b", "c"):
				t.Errorf("group: %v", p.Steps)
			}
		}
		return nil
	}, 7)
	if !called {
		t.Error("the body was not called")
	}
}

func TestOptionalPresent(t *testing.T) {
	w := world{app: []any{newApp, func() *Cache { return &Cache{"c"} }}}
	w.run(t, func(p params) {
		if p.Cache == nil || p.Cache.Name != "c" {
			t.Errorf("optional: %v", p.Cache)
		}
	}, 1)
}

func TestGroupOfBoth(t *testing.T) {
	type strs []string
	type one struct {
		dig.In
		Steps strs `group:"steps"`
	}
	w := world{app: []any{newApp}, ctors: perRun(func(token lockfx.Token) string { return "run " + token.String() })}
	w.ctors[0].Group = "steps"
	w.run(t, func(in one, p params) {
		for _, got := range [][]string{in.Steps, p.Steps} {
			if !sameElements(got, "a", "b", "c", "run 3") {
				t.Errorf("group: %v", got)
			}
		}
	}, 3)
}

func TestGroupWithoutValues(t *testing.T) {
	type in struct {
		dig.In
		None []int `group:"none"`
	}
	world{}.run(t, func(p in) {
		if p.None == nil || len(p.None) != 0 {
			t.Errorf("group: %#v", p.None)
		}
	}, 1)
}

func TestSoftGroup(t *testing.T) {
	type soft struct {
		dig.In
		Steps []string `group:"steps,soft"`
	}
	type step struct {
		dig.Out
		Writer *Writer
		Step   string `group:"steps"`
	}
	built := 0
	ctors := perRun(func(db *DB, token lockfx.Token) step { built++; return step{Writer: newWriter(db, token), Step: "run"} })
	values := map[runscope.Key]reflect.Value{
		group[string]("steps"): reflect.ValueOf([]string{"app"}), key[*DB](): reflect.ValueOf(&DB{}),
	}
	openFor := func(body any) *runscope.Scope {
		source, missing := world{ctors: ctors}.compile(t, body).BindShared(values)
		if missing != nil {
			t.Fatalf("missing: %v", missing)
		}
		return open(t, source, 1)
	}

	body := func(in soft) {
		if !sameElements(in.Steps, "app") {
			t.Errorf("alone: %v", in.Steps)
		}
	}
	scope := openFor(body)
	call(t, scope, body)
	if err := byHand(scope, body); err != nil {
		t.Error(err)
	}
	if built != 0 {
		t.Errorf("a soft group built %d values for its own sake", built)
	}

	both := func(_ *Writer, in soft) {
		if !sameElements(in.Steps, "app", "run") {
			t.Errorf("behind what it comes with: %v", in.Steps)
		}
	}
	call(t, openFor(both), both)

	plan := world{ctors: ctors}.compile(t, body)
	leaves := plan.Leaves()
	if len(leaves) != 1 || !leaves[0].Soft {
		t.Errorf("leaves of a soft group: %v", leaves)
	}
	if tag := plan.In().Field(1).Tag.Get("group"); tag != "steps,soft" {
		t.Errorf("a soft group is asked for as %q", tag)
	}
	type hard struct {
		dig.In
		Steps []string `group:"steps"`
	}
	leaves = world{}.compile(t, func(soft, hard) {}).Leaves()
	if len(leaves) != 1 || leaves[0].Soft {
		t.Errorf("leaves of a soft group that another asks for hard: %v", leaves)
	}
}

func TestShadowing(t *testing.T) {
	asked := false
	w := world{
		app: []any{
			newApp,
			func() context.Context { asked = true; return nil },
			func() *Writer { asked = true; return nil },
		},
		ctors: perRun(newWriter),
	}
	w.run(t, func(ctx context.Context, writer *Writer, db *DB) {
		if ctx == nil || writer == nil || writer.DB != db || writer.Token != 9 {
			t.Errorf("got %v %v", ctx, writer)
		}
	}, 9)
	if asked {
		t.Error("a shadowed value was asked from the application")
	}
}

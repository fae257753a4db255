package runscope_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.uber.org/dig"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/runscope"
)

// TestCompileRefuses checks that each fault is found, and that its message names
// who and what. The cases that dig judges itself are checked for those names only.
func TestCompileRefuses(t *testing.T) {
	type hidden struct {
		dig.In
		db *DB
	}
	_ = hidden{}.db // that it is there is the fault
	type results struct {
		dig.Out
		Writer *Writer
	}
	type loop struct {
		dig.In
		Steps []string `group:"steps"`
	}
	spec := func(change func(*runscope.Spec)) runscope.Spec {
		s := runscope.Spec{Body: reflect.TypeFor[func(*DB)](), Run: runKeys, Hand: reflect.TypeFor[*Hand]()}
		change(&s)
		return s
	}
	body := func(fn any) runscope.Spec {
		return spec(func(s *runscope.Spec) { s.Body = reflect.TypeOf(fn) })
	}
	run := func(keys ...runscope.Key) runscope.Spec {
		return spec(func(s *runscope.Spec) { s.Run = append(slices.Clone(s.Run), keys...) })
	}
	ctors := func(fns ...any) runscope.Spec {
		return spec(func(s *runscope.Spec) {
			s.Ctors = perRun(fns...)
			for i := range fns {
				s.Ctors[i].Label = "New" + string(rune('A'+i))
			}
		})
	}
	tagged := func(name, group string) runscope.Spec {
		s := ctors(newWriter)
		s.Ctors[0].Name, s.Ctors[0].Group = name, group
		return s
	}
	built := func(build func() (any, error)) runscope.Spec {
		return spec(func(s *runscope.Spec) { s.Ctors = []runscope.Ctor{{Build: build}} })
	}
	shared := func(k runscope.Key) runscope.Spec {
		return spec(func(s *runscope.Spec) { s.Shared = []runscope.Key{k} })
	}

	for name, c := range map[string]struct {
		spec runscope.Spec
		want []string
	}{
		"no body":                {spec(func(s *runscope.Spec) { s.Body = nil }), []string{"body: must be a function, not <nil>"}},
		"body is no function":    {body(1), []string{"body: must be a function, not int"}},
		"body takes a result":    {body(func(results) {}), []string{"body func(runscope_test.results): bad argument 1", "dig.Out"}},
		"body takes a pointer":   {body(func(*loop) {}), []string{"body func(*runscope_test.loop)", "pointer to a parameter object"}},
		"unexported field":       {body(func(hidden) {}), []string{"runscope_test.hidden", `"db"`}},
		"body takes an error":    {body(func(error) {}), []string{"body: error is an error, which no container holds"}},
		"run value without type": {run(runscope.Key{}), []string{"run value: has no type"}},
		"run value in a group":   {run(group[int]("g")), []string{`run value int[group="g"]: a run binds no groups`}},
		"run value is an error":  {run(key[error]()), []string{"run value error: "}},
		"run value twice":        {run(key[context.Context]()), []string{"the run: context.Context is already bound by the run"}},
		"hand is not bound": {
			spec(func(s *runscope.Spec) { s.Hand = reflect.TypeFor[*Cache]() }),
			[]string{"by-hand resolver *runscope_test.Cache: must be one of the run's values"},
		},
		"constructor is no function":    {ctors(3), []string{"constructor NewA: must provide constructor function, got 3 (type int)"}},
		"constructor is nil":            {ctors(nil), []string{"constructor NewA: can't provide an untyped nil"}},
		"constructor is a nil function": {ctors((func() int)(nil)), []string{"constructor NewA: the func() int is nil"}},
		"constructor gives nothing":     {ctors(func(*DB) error { return nil }), []string{"constructor NewA: func(*runscope_test.DB) error must provide at least one non-error type"}},
		"constructor takes a result":    {ctors(func(results) int { return 0 }), []string{"constructor NewA: bad argument 1", "runscope_test.results"}},
		"constructor takes an error": {
			spec(func(s *runscope.Spec) {
				s.Body = reflect.TypeFor[func(int)]()
				s.Ctors = ctors(func(error) int { return 0 }).Ctors
			}),
			[]string{"constructor NewA: error is an error, which no container holds"},
		},
		"same value twice in one":   {ctors(func() (int, int) { return 0, 0 }), []string{"constructor NewA: ", "int"}},
		"same value of two":         {ctors(newWriter, newWriter), []string{"constructor NewB: *runscope_test.Writer is already bound by constructor NewA"}},
		"same value as the run":     {ctors(func() lockfx.Token { return 0 }), []string{"constructor NewA: lockfx.Token is already bound by the run"}},
		"name and group":            {tagged("n", "g"), []string{"constructor NewA: ", `name:"n"`, `group:"g"`}},
		"flatten what is no slice":  {tagged("", "g,flatten"), []string{"constructor NewA: ", "*runscope_test.Writer is not a slice"}},
		"unknown option of a group": {tagged("", "g,odd"), []string{"constructor NewA: ", `"odd"`}},
		"cycle":                     {ctors(func(string) int { return 0 }, func(int) string { return "" }), []string{"constructor NewB: this function introduces a cycle", "func(string) int"}},
		"cycle of one":              {ctors(func(db *DB) *DB { return db }), []string{"constructor NewA: this function introduces a cycle", "*runscope_test.DB"}},
		"cycle through a group": {
			spec(func(s *runscope.Spec) {
				s.Ctors = perRun(func(loop) string { return "" })
				s.Ctors[0].Group, s.Ctors[0].Label = "steps", "NewStep"
			}),
			[]string{"constructor NewStep: this function introduces a cycle"},
		},
		"nothing builds it":       {built(nil), []string{"constructor number 1: there is no function to build it"}},
		"build panics":            {built(func() (any, error) { panic("odd") }), []string{"constructor number 1: panic: odd"}},
		"shared without type":     {shared(runscope.Key{Name: "x"}), []string{"shared value: has no type"}},
		"shared is an error":      {shared(key[error]()), []string{"shared value error: "}},
		"shared with both":        {shared(runscope.Key{Type: reflect.TypeFor[int](), Name: "n", Group: "g"}), []string{`shared value int: has both the name "n" and the group "g"`}},
		"group with a bad option": {shared(group[int]("g,odd")), []string{`shared value int[group="g,odd"]: `, `"odd"`}},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := runscope.Compile(c.spec)
			if err == nil || plan != nil {
				t.Fatalf("got a plan, and %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\ndoes not say %s", err, want)
				}
			}
			if len(c.want) == 1 && err.Error() != c.want[0] && !strings.HasPrefix(err.Error(), c.want[0]) {
				t.Errorf("got  %v\nwant %s", err, c.want[0])
			}
		})
	}
}

func TestCompileTellsAllFaultsAtOnce(t *testing.T) {
	cause := errors.New("bad annotation")
	w := world{ctors: perRun(3, newWriter, newWriter), shared: []runscope.Key{{}}}
	w.ctors[0].Build = func() (any, error) { return nil, cause }
	_, err := runscope.Compile(w.spec("no function"))
	if !errors.Is(err, cause) {
		t.Errorf("%v does not wrap the error of Build", err)
	}
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 4 {
		t.Errorf("got %d faults:\n%v", len(lines), err)
	}

	// Two cycles, of which none is reached.
	w = world{ctors: perRun(func(int) int { return 0 }, func(string) string { return "" })}
	_, err = runscope.Compile(w.spec(func() {}))
	if n := strings.Count(err.Error(), "introduces a cycle"); n != 2 {
		t.Errorf("got %d cycles:\n%v", n, err)
	}
}

func TestConstructorIsCalledByItsName(t *testing.T) {
	made := reflect.MakeFunc(reflect.TypeFor[func() lockfx.Token](), nil).Interface()
	_, err := runscope.Compile(world{ctors: perRun(newWriter, newWriter, 7, made)}.spec(func() {}))
	for _, want := range []string{
		"constructor runscope_test.newWriter: ", "constructor int: ", "constructor func() lockfx.Token: ",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not say %s", err, want)
		}
	}
}

func TestVariadicConstructor(t *testing.T) {
	w := world{app: []any{newApp}, ctors: perRun(func(db *DB, options ...string) *Writer {
		if len(options) > 0 {
			t.Errorf("options: %v", options)
		}
		return newWriter(db, 0)
	})}
	w.run(t, func(writer *Writer) {
		if writer.DB == nil {
			t.Error("no DB")
		}
	}, 1)
}

// TestLeaves checks that exactly what is needed is asked for, the stricter of two
// askers wins, and that the order is stable.
func TestLeaves(t *testing.T) {
	type maybe struct {
		dig.In
		DB    *DB      `optional:"true"`
		Cache *Cache   `optional:"true" name:"c"`
		Err   error    `optional:"true"`
		Steps []string `group:"steps"`
	}
	w := world{ctors: perRun(func(*DB, lockfx.Token, []byte) *Writer { return nil }, func(*int) *uint { return nil })}
	want := []runscope.Leaf{
		{Key: key[*DB]()},
		{Key: named[*Cache]("c"), Optional: true},
		{Key: group[string]("steps")},
		{Key: key[[]byte]()},
	}
	for range 20 {
		plan := w.compile(t, func(maybe, *Writer) {})
		if got := plan.Leaves(); !slices.Equal(got, want) {
			t.Fatalf("got  %v\nwant %v", got, want)
		}
		in := "struct { dig.In; F0 *runscope_test.DB; " +
			`F1 *runscope_test.Cache "optional:\"true\" name:\"c\""; F2 []string "group:\"steps\""; F3 []uint8 }`
		if got := plan.In().String(); got != in || !dig.IsIn(plan.In()) {
			t.Fatalf("got  %s\nwant %s", got, in)
		}
	}
	if in := (world{}).compile(t, func() {}).In(); !dig.IsIn(in) || in.NumField() != 1 {
		t.Errorf("without leaves: %v", in)
	}
}

func TestBindShared(t *testing.T) {
	type in struct {
		dig.In
		DB    *DB
		Cache *Cache          `optional:"true"`
		Any   any             `name:"any"`
		Steps []string        `group:"steps"`
		Ctx   context.Context `name:"app"`
	}
	called := false
	body := func(p in) {
		called = true
		if p.DB.Name != "db" || p.Cache != nil || p.Any != nil || p.Ctx == nil || !sameElements(p.Steps, "a") {
			t.Errorf("got %+v", p)
		}
	}
	plan := world{}.compile(t, body)

	source, missing := plan.BindShared(map[runscope.Key]reflect.Value{key[*DB](): reflect.ValueOf(&DB{})})
	want := []runscope.Leaf{{Key: named[any]("any")}, {Key: group[string]("steps")}, {Key: named[context.Context]("app")}}
	if source != nil || !slices.Equal(missing, want) {
		t.Errorf("missing %v\nwant    %v", missing, want)
	}

	source, missing = plan.BindShared(map[runscope.Key]reflect.Value{
		key[*DB]():                    reflect.ValueOf(&DB{"db"}),
		named[any]("any"):             reflect.ValueOf(nil), // an interface that holds nothing
		group[string]("steps"):        reflect.ValueOf([]string{"a"}),
		named[context.Context]("app"): reflect.ValueOf(context.Background()),
		key[*Writer]():                reflect.ValueOf(&Writer{}), // nobody asks for it
	})
	if missing != nil {
		t.Fatalf("missing %v", missing)
	}
	call(t, open(t, source, 1), body)
	if !called {
		t.Error("the body was not called")
	}
}

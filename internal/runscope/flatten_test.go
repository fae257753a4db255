package runscope

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.uber.org/dig"
)

type (
	plainIn struct {
		dig.In
		Ctx    context.Context
		Named  *int       `name:"n"`
		Maybe  io.Reader  `optional:"true"`
		Both   string     `name:"b" optional:"1"`
		Not    uint       `optional:"false"`
		Group  []string   `group:"g"`
		Soft   []error    `group:"s,soft"`
		Slices [][]string `group:"g"`
	}
	NestedIn struct {
		dig.In
		Plain plainIn `name:"means nothing"`
		Last  bool
	}
	EmbeddedIn struct {
		NestedIn
		More float64
	}
	quietIn struct {
		dig.In `ignore-unexported:"true"`
		Shown  int
		hidden string
	}
	notIn struct{ Field int }
	Bag   struct {
		dig.In
		notIn
		Plain notIn
	}
	quietBag struct {
		dig.In `ignore-unexported:"true"`
		notIn
	}
	named   []string
	aliasIn struct {
		dig.In
		Values named `group:"g"`
	}
	emptyIn  struct{ dig.In }
	plainOut struct {
		dig.Out
		Value  *int
		Named  *int     `name:"n"`
		Group  string   `group:"g"`
		Flat   []string `group:"g,flatten"`
		Whole  []string `group:"g"`
		Errors []error  `group:"e,flatten"`
		Error  error    `group:"e"`
	}
	NestedOut struct {
		dig.Out
		Plain plainOut
		Other io.Reader `name:"r"`
	}
	EmbeddedOut struct {
		NestedOut
		More float64
	}
)

// TestFlattenFollowsDig compares what we see in a function with what dig reports.
func TestFlattenFollowsDig(t *testing.T) {
	shapes := []Ctor{
		{Build: give(func() int { return 0 })},
		{Build: give(func(context.Context, *int, ...string) int { return 0 })},
		{Build: give(func(...string) int { return 0 })},
		{Build: give(func(plainIn) int { return 0 })},
		{Build: give(func(int, NestedIn, string) int { return 0 })},
		{Build: give(func(EmbeddedIn, plainIn) int { return 0 })},
		{Build: give(func(quietIn) string { return "" })},
		{Build: give(func(quietBag, emptyIn, aliasIn) string { return "" })},
		{Build: give(func() (int, string, error) { return 0, "", nil })},
		{Build: give(errorFirst)},
		{Build: give(func() plainOut { return plainOut{} })},
		{Build: give(func() (NestedOut, bool, error) { return NestedOut{}, false, nil })},
		{Build: give(func() EmbeddedOut { return EmbeddedOut{} })},
		{Build: give(func() (int, string) { return 0, "" }), Name: "n"},
		{Build: give(func() (int, string) { return 0, "" }), Group: "g"},
		{Build: give(func() ([]int, named) { return nil, nil }), Group: "g,flatten"},
		{Build: give(func() []int { return nil }), Group: "g"},
	}
	for _, shape := range shapes {
		if err := conforms(shape); err != nil {
			t.Error(err)
		}
	}
}

// TestFlattenFollowsDigOnAnything does the same for shapes made at random. Many of
// them are refused by dig; those that it takes must be seen alike.
func TestFlattenFollowsDigOnAnything(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	taken := 0
	for range 3000 {
		var in, out []reflect.Type
		for range r.IntN(4) {
			in = append(in, randomType(r, inType, 3))
		}
		for range 1 + r.IntN(3) {
			out = append(out, randomType(r, outType, 3))
		}
		variadic := len(in) > 0 && in[len(in)-1].Kind() == reflect.Slice && r.IntN(2) == 0
		fn := reflect.Zero(reflect.FuncOf(in, out, variadic)).Interface()
		shape := Ctor{Build: give(fn)}
		switch r.IntN(6) {
		case 0:
			shape.Name = "n"
		case 1:
			shape.Group = randomOf(r, "g", "g,flatten", "g,soft")
		}
		if judge(fn, options(shape)...) != nil {
			continue
		}
		taken++
		if err := conforms(shape); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("dig took %d shapes", taken)
	if taken < 500 {
		t.Errorf("only %d shapes were compared", taken)
	}
}

// randomType returns a type that may embed marker, which is dig.In or dig.Out.
func randomType(r *rand.Rand, marker reflect.Type, depth int) reflect.Type {
	plain := []reflect.Type{
		reflect.TypeFor[int](), reflect.TypeFor[*string](), reflect.TypeFor[[]string](), reflect.TypeFor[io.Reader](),
		reflect.TypeFor[[][]bool](), reflect.TypeFor[named](), reflect.TypeFor[notIn](), reflect.TypeFor[map[string]int](),
	}
	if depth == 0 || r.IntN(2) == 0 {
		return plain[r.IntN(len(plain))]
	}
	head := reflect.StructField{Name: marker.Name(), Type: marker, Anonymous: true}
	quiet := marker == inType && r.IntN(2) == 0
	if quiet {
		head.Tag = `ignore-unexported:"true"`
	}
	fields := []reflect.StructField{head}
	for i := range r.IntN(5) {
		f := reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: randomType(r, marker, depth-1)}
		f.Tag = reflect.StructTag(randomOf(r, "", "", `name:"n"`, `name:"m"`, `group:"g"`, `group:"h,flatten"`,
			`group:"h,soft"`, `optional:"true"`, `name:"n" optional:"false"`))
		if quiet && r.IntN(4) == 0 {
			f.Name, f.PkgPath = fmt.Sprintf("f%d", i), "example"
		}
		fields = append(fields, f)
	}
	return reflect.StructOf(fields)
}

func randomOf[T any](r *rand.Rand, choices ...T) T { return choices[r.IntN(len(choices))] }

func give(fn any) func() (any, error) { return func() (any, error) { return fn, nil } }

func options(c Ctor) []dig.ProvideOption {
	var opts []dig.ProvideOption
	if c.Name != "" {
		opts = append(opts, dig.Name(c.Name))
	}
	if c.Group != "" {
		opts = append(opts, dig.Group(c.Group))
	}
	return opts
}

func conforms(shape Ctor) error {
	fn, _ := shape.Build()
	var info dig.ProvideInfo
	if err := dig.New(dig.DeferAcyclicVerification()).Provide(fn, append(options(shape), dig.FillProvideInfo(&info))...); err != nil {
		return fmt.Errorf("%T: %w", fn, err)
	}
	t := reflect.TypeOf(fn)
	var ins, outs []string
	for _, l := range params(positional(t)) {
		ins = append(ins, asDig(l.Key, l.fieldType(), l.Optional))
	}
	for _, k := range results(t, shape.Name, shape.Group) {
		outs = append(outs, asDig(k, k.Type, false))
	}
	want := texts(info.Inputs)
	for i := range want {
		// dig shows a group by its slice, which may be of a type of its own. What it
		// looks for is the element.
		want[i] = strings.Replace(want[i], "runscope.named[group", "[]string[group", 1)
	}
	if !slices.Equal(ins, want) {
		return fmt.Errorf("%v takes\n %q and dig says\n %q", t, ins, want)
	}
	if want = texts(info.Outputs); !slices.Equal(outs, want) {
		return fmt.Errorf("%v gives\n %q and dig says\n %q", t, outs, want)
	}
	return nil
}

// asDig writes a key the way dig.Input and dig.Output do.
func asDig(k Key, t reflect.Type, optional bool) string {
	var notes []string
	if optional {
		notes = append(notes, "optional")
	}
	if k.Name != "" {
		notes = append(notes, fmt.Sprintf("name = %q", k.Name))
	}
	if k.Group != "" {
		notes = append(notes, fmt.Sprintf("group = %q", k.Group))
	}
	if notes == nil {
		return t.String()
	}
	return fmt.Sprintf("%v[%s]", t, strings.Join(notes, ", "))
}

func texts[T fmt.Stringer](list []T) []string {
	var out []string
	for _, v := range list {
		out = append(out, v.String())
	}
	return out
}

// TestSoft covers what dig does not report.
func TestSoft(t *testing.T) {
	for _, l := range params([]reflect.Type{reflect.TypeFor[plainIn]()}) {
		if l.Soft != (l.Group == "s") {
			t.Errorf("%v: soft is %v", l.Key, l.Soft)
		}
	}
}

// That it is left out is the point.
var _ = quietIn{}.hidden

//lint:ignore ST1008 dig takes it, so the flattener must
func errorFirst() (error, int) { return nil, 0 } //nolint:revive,staticcheck // as above

package runscope_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/dig"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/runscope"
)

// A soft group that a constructor of the run takes has what the application gives,
// although nothing else asks for the application's values.
func TestSoftGroup_TakenByAConstructor(t *testing.T) {
	type soft struct {
		dig.In
		Steps []string `group:"steps,soft"`
	}
	body := func(writer *Writer) {
		if writer.DB.Name != "app" {
			t.Errorf("it took %q", writer.DB.Name)
		}
	}
	w := world{ctors: perRun(func(in soft) *Writer { return &Writer{DB: &DB{Name: strings.Join(in.Steps, ",")}} })}
	source, missing := w.compile(t, body).BindShared(map[runscope.Key]reflect.Value{
		group[string]("steps"): reflect.ValueOf([]string{"app"}),
	})
	if missing != nil {
		t.Fatalf("missing: %v", missing)
	}
	call(t, open(t, source, 1), body)
}

// The zero of a type that has no nil may be a value of the application, so it counts as
// there, also for who resolves by hand.
func TestOptional_ZeroStructIsAValue(t *testing.T) {
	type limits struct{ Rows int }
	type in struct {
		dig.In
		Limits limits `optional:"true"`
	}
	scope := world{app: []any{func() limits { return limits{} }}}.open(t, func(in) {}, 1)
	if err := byHand(scope, func(limits) {}); err != nil {
		t.Errorf("the application's zero is not there: %v", err)
	}
}

// The blame is on the constructor that failed, and on no other that was built before or
// would have been built next.
func TestErrors_BlameTheConstructorThatFailed(t *testing.T) {
	type (
		first  struct{}
		second struct{}
		third  struct{}
	)
	cause := errors.New("disk full")
	for label, fails := range map[string]int{"first": 0, "second": 1, "third": 2} {
		at := func(i int) error {
			if i == fails {
				return cause
			}
			return nil
		}
		w := world{ctors: perRun(
			func() (*first, error) { return &first{}, at(0) },
			func(*first) (*second, error) { return &second{}, at(1) },
			func(*first, *second) (*third, error) { return &third{}, at(2) },
		)}
		for i, l := range []string{"first", "second", "third"} {
			w.ctors[i].Label = l
		}
		_, err := w.open(t, func(*third) {}, lockfx.Token(1)).Args()
		var ctor *runscope.CtorError
		if !errors.As(err, &ctor) || ctor.Label != label || !errors.Is(err, cause) {
			t.Errorf("%s failed: %v", label, err)
		}
	}
}

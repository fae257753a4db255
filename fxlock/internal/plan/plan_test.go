package plan_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/plan"
	"github.com/lockfx/lockfx/internal/runscope"
)

type (
	hand struct{}
	lock struct{}
	db   struct{}
)

// planner is that of a module "nightly" with the given shared values.
func planner(shared ...runscope.Key) plan.Planner {
	return plan.Planner{
		Module: `fxlock.Module("nightly")`, Graph: true, Own: []runscope.Key{{Type: reflect.TypeFor[*lock]()}},
		TokenName: "lock:fence", HolderName: "lock:holder", Hand: reflect.TypeFor[*hand](), Shared: shared,
	}
}

// A planner needs no lock and no graph: a value that nothing gives has the hint that helps.
func TestSharedSource_HintsForWhatIsMissing(t *testing.T) {
	for name, tt := range map[string]struct {
		body any
		want string
	}{
		"a value":  {func(*db) {}, `*plan_test.db does not reach the run: add fxlock.Share[*plan_test.db]() or fxlock.PerRun to fxlock.Module("nightly")`},
		"a logger": {func(*zap.Logger) {}, "give the application one, or fxlock.WithLogger to"},
		"the lock": {func(*lock) {}, "a run has no use for its own lock"},
		"two":      {func(*db, *lock) {}, "*plan_test.lock does not reach the run"},
		"no fault": {func(context.Context, lockfx.Token, lockfx.Holder, *hand) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := planner()
			_, err := p.SharedSource(reflect.TypeOf(tt.body), nil, nil)
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, lockfx.ErrConfig) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("err = %v\nwant %s", err, tt.want)
			}
		})
	}
}

// A predicate is evaluated before there is a run, so it can't take what the run binds.
func TestCondition_RejectsRunOnlyParameters(t *testing.T) {
	p := planner()
	if _, err := p.Condition(reflect.TypeFor[func(context.Context, *db) bool](), nil); err != nil {
		t.Error(err)
	}
	for _, fn := range []reflect.Type{reflect.TypeFor[func(lockfx.Token) bool](), reflect.TypeFor[func(*hand) bool]()} {
		if _, err := p.Condition(fn, nil); err == nil || !strings.Contains(err.Error(), "which only a run binds") {
			t.Errorf("%v: err = %v", fn, err)
		}
	}
}

// What constructors of the run need must be shared where no body is planned.
func TestCheck_SaysWhatConstructorsDoNotReach(t *testing.T) {
	ctor, err := plan.Ctor(func(*db) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	for _, shared := range [][]runscope.Key{nil, {{Type: reflect.TypeFor[*db]()}}} {
		p := planner(shared...)
		p.Ctors = []runscope.Ctor{ctor}
		unreached, err := p.Check()
		if err != nil || (unreached == nil) != (shared != nil) {
			t.Errorf("shared %v: unreached %v, err %v", shared, unreached, err)
		}
	}
}

package fxlock

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/lockfx/lockfx"
)

// A RunOrLeadOption configures a [Body], an [OnStart] or a [Lead].
type RunOrLeadOption interface {
	RunOption
	LeadOption
}

// After makes what it is given to depend on the job of the start [OnStart] that has the
// marker M:
//
//   - a [Lead] campaigns once the job is done. Without it a first term may begin before the
//     job, since fx starts what was built first;
//   - what takes the F of a [Body] starts after the job;
//   - an OnStart runs after the other one.
//
// If the job fails, they don't begin. M must be in the graph. It may be given more than
// once. A function that takes an M says the same.
func After[M any]() RunOrLeadOption { return orderOption{"After", reflect.TypeFor[M](), true} }

// NotAfter says that a [Lead] need not wait for the job of the start that has the marker M,
// which [Validate] otherwise asks for.
func NotAfter[M any]() LeadOption { return orderOption{"NotAfter", reflect.TypeFor[M](), false} }

// orderOption is an order to a job of the start.
type orderOption struct {
	name   string
	marker reflect.Type
	after  bool
}

func (o orderOption) String() string { return fmt.Sprintf("fxlock.%s[%v]()", o.name, o.marker) }

func (o orderOption) applyRun(r *runSettings) {
	if err := checkMarker(o.marker); err != nil {
		r.faults = append(r.faults, faultOf(o.String(), err))
	}
	r.after = append(r.after, o.marker)
}

func (o orderOption) applyLead(l *leadSettings) {
	switch err := checkMarker(o.marker); {
	case err != nil:
		l.faults = append(l.faults, faultOf(o.String(), err))
	case o.after:
		l.after = append(l.after, o.marker)
	default:
		l.notAfter = append(l.notAfter, o.marker)
	}
}

// checkMarker checks the marker type of a job.
func checkMarker(m reflect.Type) error {
	if !isMarker(m) {
		return fmt.Errorf("%w: %v must be a marker type of your own, such as: type Migrated struct{}", lockfx.ErrConfig, m)
	}
	return nil
}

func isMarker(t reflect.Type) bool { return t.PkgPath() != "" && t.Kind() != reflect.Interface }

// orderRule tells [Validate] of which markers a Lead says whether it begins after them.
func orderRule(b *body, s *settings, lead leadSettings) any {
	said := slices.Concat(b.run.after, lead.notAfter)
	leaves := b.blueprint.Leaves()
	if b.condition != nil {
		leaves = append(slices.Clone(leaves), b.condition.Leaves()...)
	}
	for _, leaf := range leaves {
		said = append(said, leaf.Type)
	}
	var names []string
	for _, t := range said {
		if isMarker(t) {
			names = append(names, typeName(t))
		}
	}
	return provideRule(b.pc, leadRule(s.name, strings.Join(names, " ")))
}

func leadRule(lock, said string) string {
	return fmt.Sprintf("the fxlock.Lead of the lock %s, of which there can be one; it says whether it begins after these jobs: %s; and no other", lock, said)
}

// typeName names a type so that two of them are told apart.
func typeName(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }

package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/runscope"
)

// missing says which values do not reach a run, with a hint for each; nil for none.
func (p *Planner) missing(leaves []runscope.Leaf) error {
	var faults []error
	for _, leaf := range leaves {
		faults = append(faults, fmt.Errorf("%w: %v does not reach the run: %s", lockfx.ErrConfig, leaf.Key, p.hint(leaf.Key)))
	}
	return errors.Join(faults...)
}

// Hinted returns an error of a scope with a hint for each value that is missing there.
func (p *Planner) Hinted(err error) error {
	var missing *runscope.MissingError
	if !errors.As(err, &missing) {
		return err
	}
	faults := make([]error, len(missing.Keys))
	for i, k := range missing.Keys {
		faults[i] = fmt.Errorf("%w: %v is not in the scope: %s", lockfx.ErrConfig, k, p.hint(k))
	}
	return errors.Join(faults...)
}

// hint says what would put k into the scope of a run.
func (p *Planner) hint(k runscope.Key) string {
	switch {
	case k == runscope.Key{Type: loggerType}:
		return fmt.Sprintf("give the application one, or fxlock.WithLogger to %s", p.Module)
	case slices.Contains(p.Own, k):
		return "a run has no use for its own lock, which is not reentrant; take the lockfx.Holder"
	case p.bindsType(k):
		return fmt.Sprintf("a run binds it unnamed; the token also as name:%q, and the holder as name:%q", p.TokenName, p.HolderName)
	case !p.Graph:
		return fmt.Sprintf("add fxlock.PerRun to %s, or use fxlock.Module", p.Module)
	}
	return fmt.Sprintf("add %s or fxlock.PerRun to %s, or bind the body with fxlock.Body", shareText(k), p.Module)
}

// bindsType reports whether a run binds values of the type of k, under other names.
func (p *Planner) bindsType(k runscope.Key) bool {
	return k.Group == "" && slices.ContainsFunc(p.keys(nil), func(bound runscope.Key) bool { return bound.Type == k.Type })
}

// shareText prints the option that shares k.
func shareText(k runscope.Key) string {
	switch {
	case k.Group != "":
		return fmt.Sprintf("fxlock.ShareGroup[%v](%q)", k.Type, k.Group)
	case k.Name != "":
		return fmt.Sprintf("fxlock.Share[%v](%q)", k.Type, k.Name)
	}
	return fmt.Sprintf("fxlock.Share[%v]()", k.Type)
}

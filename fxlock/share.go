package fxlock

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/graph"
	"github.com/lockfx/lockfx/internal/runscope"
)

// Share makes a value of the application, unnamed or under the given name,
// available to bodies that are given to [Lock.Run], and by hand through [Scope].
// It is built with the lock, so it must not itself depend on the lock; a body that
// is bound with [Body] needs no Share.
func Share[T any](name ...string) Option {
	key := runscope.Key{Type: reflect.TypeFor[T]()}
	if len(name) > 0 {
		key.Name = name[0]
	}
	text := fmt.Sprintf("fxlock.Share[%v](%s)", key.Type, graph.Quoted(name))
	return option{text, func(s *settings) {
		s.moduleOnly(text)
		if len(name) > 1 {
			s.fault(text, "takes one name at most")
		}
		s.shared = append(s.shared, key)
	}}
}

// ShareGroup is [Share] for a value group of the application whose elements are T.
func ShareGroup[T any](group string) Option {
	key := runscope.Key{Type: reflect.TypeFor[T](), Group: group}
	text := fmt.Sprintf("fxlock.ShareGroup[%v](%q)", key.Type, group)
	return option{text, func(s *settings) {
		s.moduleOnly(text)
		if group == "" {
			s.fault(text, "the group must not be empty")
		}
		s.shared = append(s.shared, key)
	}}
}

// notShared says what a body asks for in vain, and the cure.
func (s *settings) notShared(leaves []runscope.Leaf) error {
	faults := make([]error, len(leaves))
	for i, leaf := range leaves {
		faults[i] = fmt.Errorf("%w: %v does not reach the run: %s", lockfx.ErrConfig, leaf.Key, s.cureFor(leaf.Key))
	}
	return errors.Join(faults...)
}

// cureFor says what would put k into the scope of a run.
func (s *settings) cureFor(k runscope.Key) string {
	switch {
	case k == runscope.Key{Type: loggerType}:
		return fmt.Sprintf("give the application one, or fxlock.WithLogger to %s", s.moduleText())
	case s.itself(k):
		return "a run has no use for its own lock, which is not reentrant; take the lockfx.Holder"
	case s.bindsType(k):
		return fmt.Sprintf("a run binds it unnamed; the token also as name:%q, and the holder as name:%q", s.tokenName, s.holderName)
	case !s.module:
		return fmt.Sprintf("add fxlock.PerRun to %s, or use fxlock.Module", s.moduleText())
	}
	return fmt.Sprintf("add %s or fxlock.PerRun to %s, or bind the body with fxlock.Body", shareText(k), s.moduleText())
}

// itself reports whether k is the lock whose run asks for it.
func (s *settings) itself(k runscope.Key) bool {
	own := k.Name == s.name || k.Name == "" && !s.named
	return k.Type == reflect.TypeFor[*Lock]() && k.Group == "" && own
}

// bindsType reports whether a run binds values of the type of k, under other names.
func (s *settings) bindsType(k runscope.Key) bool {
	return k.Group == "" && slices.ContainsFunc(s.boundKeys(nil), func(bound runscope.Key) bool { return bound.Type == k.Type })
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

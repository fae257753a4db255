package fxlock

import (
	"fmt"
	"reflect"

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

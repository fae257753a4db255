package layered

import (
	"context"
	"errors"
)

// errNested says that a call would wait for the one that it is made within.
var errNested = errors.New("the call that asks holds this lock itself")

type holdKey struct{}

// around returns the context of the callbacks that run under h.
func (h *hold) around(ctx context.Context) context.Context {
	h.outer, _ = ctx.Value(holdKey{}).(*hold)
	return context.WithValue(ctx, holdKey{}, h)
}

// nested reports whether ctx is that of a call which holds what h would wait for at l.
func (h *hold) nested(ctx context.Context, l Layer) bool {
	outer, _ := ctx.Value(holdKey{}).(*hold)
	for ; outer != nil; outer = outer.outer {
		if outer.on[l] && !outer.over.Load() && h.shares(outer, l) {
			return true
		}
	}
	return false
}

// shares reports whether h and other lock the same thing at l.
func (h *hold) shares(other *hold, l Layer) bool {
	switch l {
	case LayerMemory:
		return h.name == other.name && h.s.locker == other.s.locker
	case LayerWorker:
		return h.name == other.name
	default:
		return h.place.path == other.place.path
	}
}

package fxlock

import (
	"github.com/lockfx/lockfx"
)

// New returns a lock that belongs to no application: whoever makes it disposes of
// it, or hands it to [Bind]. [WithKey] and [WithTTL] are required. Options that
// take values from a graph are refused. All faults are reported together; each
// matches [lockfx.ErrConfig].
func New(opts ...Option) (*Lock, error) {
	s, err := newSettings(&settings{}, opts)
	if err != nil {
		return nil, at(s.moduleText(), err)
	}
	var store lockfx.Store
	if s.store != nil {
		store = s.store.value
	}
	return newLock(s, store, nil)
}

package fxlock

import (
	"fmt"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/graph"
)

// Namespace puts name and a slash before the keys of an application's locks, so that two
// applications that share a store, and both have a fxlock.Module("migrations"), don't
// wait for each other. A key that [WithKey] sets stays as it is: that is how two
// applications share a lock. A name that makes a key which [lockfx.CheckKey] refuses is an
// error of fx.New. The locks of [New] have no namespace.
func Namespace(name string) fx.Option {
	site := graph.CallSite()
	if err := lockfx.CheckKey(name); err != nil {
		return fx.Error(fmt.Errorf("%s (%s): %w", call("Namespace", name), graph.Place(site), err))
	}
	return fx.Provide(
		graph.OneNamespace(site),
		graph.Located(func() namespace { return namespace(name) }, site),
	)
}

// namespace is the name of a Namespace, or "".
type namespace string

// in returns s with its key in n, unless an option has set the key.
func (s *settings) in(n namespace) (*settings, error) {
	if n == "" || s.ownKey {
		return s, nil
	}
	own := *s // an option value may serve more than one application
	own.key = string(n) + "/" + s.key
	return &own, lockfx.CheckKey(own.key)
}

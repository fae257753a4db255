package main

import (
	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// newStore returns the store that all replicas share. Nothing else here knows which
// one it is.
func newStore() lockfx.Store { return fxlock.NewMemoryStore() }

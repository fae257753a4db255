// Package storemodel says in the plainest way what a store has to answer, and finds
// where one answers otherwise. It is for the tests of stores in this process, and goes
// further than package storetest: it knows every answer to the nanosecond.
package storemodel

import "github.com/lockfx/lockfx"

// Store is a store with the capabilities that the model knows.
type Store interface {
	lockfx.Store
	lockfx.Watcher
	lockfx.Inspector
	lockfx.Breaker
}

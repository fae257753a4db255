package main

import (
	"context"
	"errors"
	"strings"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
	"github.com/lockfx/lockfx/fxlock"
)

// storeChoice is what -store says. Its zero value is the memory store.
type storeChoice struct {
	dir string // of the file store; "" stands for the memory store
}

// parse takes the value of the flag.
func (c *storeChoice) parse(value string) error {
	dir, isDir := strings.CutPrefix(value, "dir:")
	switch {
	case value == "memory":
		*c = storeChoice{}
	case isDir && dir != "":
		*c = storeChoice{dir: dir}
	default:
		return errors.New("must be memory or dir:PATH")
	}
	return nil
}

// shared reports whether other processes can use the same store.
func (c storeChoice) shared() bool { return c.dir != "" }

// open returns the store. Nothing else here knows which one it is.
func (c storeChoice) open() (lockfx.Store, error) {
	if c.dir == "" {
		return fxlock.NewMemoryStore(), nil
	}
	return filestore.New(c.dir)
}

// closeStore closes a store that has something to close, after all replicas.
func closeStore(store lockfx.Store) error {
	closer, ok := store.(lockfx.Closer)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return closer.Close(ctx)
}

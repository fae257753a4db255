package lifecycle

import (
	"cmp"
	"context"
	"errors"

	"github.com/lockfx/lockfx"
)

var (
	errNoWatcher = errors.New("the store cannot notify waiters")
	errNoSignals = errors.New("the store gave no channel")
)

// Watch watches the key, if the store is a [lockfx.Watcher]. It is a call of the
// store like the others: its panics are errors, and it is bounded, by the ttl where
// there is no call timeout. stop must be called, unless there is an error.
func (m *Machine) Watch(ctx context.Context) (freed <-chan struct{}, stop func(), err error) {
	defer func() {
		if r := recover(); r != nil {
			freed, stop, err = nil, nil, panicked(r)
		}
	}()
	watcher, ok := m.cfg.Store.(lockfx.Watcher)
	if !ok {
		return nil, nil, errNoWatcher
	}
	bounded, cancel := context.WithTimeout(ctx, cmp.Or(m.cfg.CallTimeout, m.cfg.TTL))
	defer cancel()
	freed, stop, err = watcher.Watch(bounded, m.cfg.Key)
	if err == nil && freed == nil {
		return nil, nil, errNoSignals
	}
	return freed, stop, err
}

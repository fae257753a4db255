package pgstore

import (
	"context"
	"errors"
	"time"

	"github.com/lockfx/lockfx/storekit"
)

const (
	// silence is how long the connection may carry nothing before it is tested, and
	// testWithin bounds that test: a waiter on a dead connection looks again after both.
	silence    = 5 * time.Second
	testWithin = 2 * time.Second
	// watchedFor is how long the server remembers that a key is watched, and markEvery
	// how often it is reminded.
	watchedFor = 5 * time.Minute
	markEvery  = 2 * time.Minute
	// openWithin bounds the attempts to make a connection, or to replace one that broke.
	// openAgain is the pause between two, and from one connection to the next.
	openWithin = 5 * time.Second
	openAgain  = 100 * time.Millisecond
)

// listener receives the keys that were freed.
type listener interface {
	// next returns the next key, or "" when there was none for as long as silence or when
	// changes has a signal, which changed reports. An error says that the connection is
	// lost.
	next(ctx context.Context, changes <-chan struct{}) (key string, changed bool, err error)
	// test returns an error when the connection is lost.
	test(context.Context) error
	// mark makes the server notify when one of the keys is freed, for watchedFor. It
	// returns those for which it did not until now.
	mark(ctx context.Context, keys []string) (missed []string, err error)
	close()
}

// cannotListenError says that no notification can ever come over the pool.
type cannotListenError struct{ reason string }

func (e cannotListenError) Error() string { return "can't listen: " + e.reason }

// listen serves all watches over one connection at a time, until ctx ends or none can be
// had. Those who wait know best how to go on then.
func (s *Store) listen(ctx context.Context, source *storekit.Source) error {
	l, err := s.opener(ctx)
	for wake := func() {}; err == nil; wake = source.WakeAll { // what was notified between two connections is lost
		began := time.Now()
		err = serve(ctx, source, l, wake)
		l.close()
		if !pause(ctx, openAgain-time.Since(began)) || ctx.Err() != nil {
			return err
		}
		l, err = s.reopen(ctx)
	}
	if errors.As(err, new(cannotListenError)) {
		s.cannotListen.Store(&err)
	}
	return err
}

// reopen replaces a connection that broke.
func (s *Store) reopen(ctx context.Context) (listener, error) {
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	for {
		l, err := s.opener(ctx)
		if err == nil || errors.As(err, new(cannotListenError)) || !pause(ctx, openAgain) {
			return l, err
		}
	}
}

// serve passes notifications on until the connection is lost or ctx ends. It calls ready
// when it has begun.
func serve(ctx context.Context, source *storekit.Source, l listener, ready func()) error {
	m := marks{source: source, listener: l}
	if err := m.renew(ctx); err != nil {
		return err
	}
	ready()
	for {
		key, changed, err := l.next(ctx, source.Changed())
		if key != "" {
			source.Wake(key)
		}
		switch {
		case err != nil:
		case changed:
			err = m.add(ctx)
		case key == "":
			err = l.test(ctx)
		}
		if err == nil && time.Since(m.renewed) >= markEvery {
			err = m.renew(ctx)
		}
		if err != nil {
			return err
		}
	}
}

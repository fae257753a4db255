package storetest

import (
	"context"
	"fmt"
	"time"
)

// opening is what the other cases rely on: most of them meet a held key.
var opening = []Promise{
	{Name: "exclusion/acquire-never-waits", opens: true, Text: "Acquire answers at once when the key is held; it does not wait for the lease to end.", check: func(e *env) {
		const tries = 5
		// Of each kind the shortest counts: a machine that is slow for a moment shows nothing.
		free, held := e.patience(), e.patience()
		for i := range tries {
			free = min(free, e.acquisition(fmt.Sprint("free ", i), e.patience()).took)
			if free == e.patience() {
				e.fail("an acquisition of a free key has not answered within %v", free)
			}
		}
		e.acquisition(key, e.patience())
		enough := 10*free + e.TTL/100
		for range tries {
			o := e.acquisition(key, enough+e.TTL)
			if held = min(held, o.took); held <= enough {
				return
			}
			if !o.returned {
				break
			}
		}
		e.fail("an acquisition of a held key took at least %v, and of a free one %v: the store waits for the lease to end, or tries again by itself", held, free)
	}},
}

// acquisition measures one of a long lease, whatever comes of it.
func (e *env) acquisition(key string, within time.Duration) outcome {
	return e.timed(within, func(ctx context.Context) (bool, error) {
		g, err := e.Store.Acquire(ctx, key, 20*e.TTL)
		return g.OK, err
	})
}

// outcome is what a call came to.
type outcome struct {
	ok       bool
	err      error
	returned bool
	took     time.Duration
}

// timed makes a call whose context ends after so long, and waits for it that long and
// a little.
func (e *env) timed(within time.Duration, call func(context.Context) (bool, error)) outcome {
	ctx, cancel := context.WithTimeout(e.ctx, within)
	defer cancel()
	began, answer := time.Now(), make(chan outcome, 1)
	e.calls.Go(func() {
		o := outcome{err: errExited, returned: true}
		defer func() {
			o.took = time.Since(began)
			answer <- o
		}()
		defer seen(&o.err)
		o.ok, o.err = call(ctx)
	})
	select {
	case o := <-answer:
		return o
	case <-ctx.Done():
	}
	select {
	case o := <-answer:
		return o
	case <-time.After(e.patience()):
		return outcome{err: context.Cause(ctx), took: time.Since(began)}
	}
}

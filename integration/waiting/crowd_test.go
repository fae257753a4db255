package queue_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// room is a file that exists while somebody is in it. Two at once is an error, also
// if they are of different processes.
type room string

// stay is how long a visit takes. The others are back in line meanwhile.
const stay = 2 * time.Millisecond

func roomIn(dir string) room { return room(filepath.Join(dir, "room")) }

func (r room) visit() error {
	f, err := os.OpenFile(string(r), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("two hold the lock at once: %w", err)
	}
	time.Sleep(stay)
	return errors.Join(f.Close(), os.Remove(string(r)))
}

// A planted fault.
func TestTwoInARoomAreNoticed(t *testing.T) {
	r := roomIn(t.TempDir())
	if err := os.WriteFile(string(r), nil, 0o600); err != nil { // somebody is in it
		t.Fatal(err)
	}
	if r.visit() == nil {
		t.Error("a second visitor was not noticed")
	}
	if err := os.Remove(string(r)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.visit(); err != nil {
			t.Errorf("one after the other: %v", err)
		}
	}
}

// leaseTime is so long that no heartbeat is due while requests are counted.
const leaseTime = 5 * time.Minute

// crowd is the callers of one process that wait for one key.
type crowd struct {
	Place   place
	Key     string
	Room    room
	Locks   int // over one client
	Waiters int // of each lock
	Rounds  int // of each waiter
}

func (c crowd) runs() int { return c.Locks * c.Waiters * c.Rounds }

// meet makes all of them wait, and run in turn. Somebody else holds the key until
// inLine is called. It returns how many requests were sent for that.
func (c crowd) meet(ctx context.Context, inLine func()) (sent int64, err error) {
	p, err := c.Place.open(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	var waiters sync.WaitGroup
	var mu sync.Mutex // guards faults
	var faults []error
	var locks []*fxlock.Lock
	for range c.Locks {
		o := observe(p)
		lock, err := fxlock.New(fxlock.WithKey(c.Key), fxlock.WithTTL(leaseTime), fxlock.WithStore(o))
		if err != nil {
			return 0, err
		}
		locks = append(locks, lock)
		for range c.Waiters {
			waiters.Go(func() {
				err := c.wait(ctx, lock)
				mu.Lock()
				defer mu.Unlock()
				faults = append(faults, err)
			})
		}
		if err := o.awaitLine(ctx); err != nil {
			return 0, err
		}
	}
	inLine()
	waiters.Wait()
	sent = p.sent.n.Load()
	for _, lock := range locks {
		faults = append(faults, lock.Dispose(ctx))
	}
	return sent, errors.Join(faults...)
}

// wait is what one of them does.
func (c crowd) wait(ctx context.Context, lock *fxlock.Lock) error {
	for range c.Rounds {
		err := lock.Do(ctx, func(context.Context, lockfx.Holder) error { return c.Room.visit() }, fxlock.WaitForever())
		if err != nil {
			return err
		}
	}
	return nil
}

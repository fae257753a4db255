package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/lockfx/lockfx/filestore"
)

// leading is a story of three processes that campaign for one lease in a directory.
type leading struct {
	world
	members []*member
	elected chan *member // each election, in order
}

// leadTime is for how long a leader is left in peace.
const leadTime = 1500 * time.Millisecond

// tellLeading tells the story: the leader is killed, and its successor is stopped. When
// ctx ends it stops all processes at once and, if all went well, returns errInterrupted.
func tellLeading(ctx context.Context, w world, stderr io.Writer) error {
	dir := filepath.Dir(w.reportFile)
	locks := filepath.Join(dir, "locks")
	store, err := filestore.New(locks)
	if err != nil {
		return err
	}
	w.store = store
	s := &leading{world: w, elected: make(chan *member, 100)}
	s.out.title(fmt.Sprintf("Three processes, one leader. Its lease, in %s, lasts %v", locks, leadTTL))
	err = s.tell(ctx, []string{"-lead", "-store", "dir:" + locks, "-out", dir}, stderr)
	switch {
	case ctx.Err() != nil:
		s.out.title("Interrupted: everything stops")
		err = errInterrupted
	case err != nil:
		s.out.title("A fault: everything stops")
	default:
		s.out.title("3. The last one stops")
	}
	return join(err, s.stopAll(), s.tellLease(), closeStore(store))
}

func (s *leading) tell(ctx context.Context, args []string, stderr io.Writer) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	for range 3 {
		m, err := startMember(program, args, s.out, stderr, s.hear)
		if err != nil {
			return err
		}
		s.members = append(s.members, m)
	}
	leader, err := s.successor(ctx, nil)
	if err != nil {
		return err
	}
	leader, err = s.leaderAfter(ctx, leader, leadTime)
	if err != nil {
		return err
	}

	s.out.title("1. The leader is killed, as by kill -9. Nobody gives its lease back: it runs out")
	begun := time.Now()
	if err := leader.kill(); err != nil {
		return err
	}
	s.out.say(leader.name, "IS DEAD")
	next, err := s.successor(ctx, leader)
	if err != nil {
		return err
	}
	s.out.say(next.name, "took over %v after that", round(time.Since(begun)))
	next, err = s.leaderAfter(ctx, next, leadTime)
	if err != nil {
		return err
	}

	s.out.title("2. Its successor is stopped: it ends its term, gives the lease back, and the next one leads at once")
	begun = time.Now()
	next.stop()
	s.out.say(next.name, "IS TOLD TO STOP")
	last, err := s.successor(ctx, next)
	if err != nil {
		return err
	}
	s.out.say(last.name, "took over %v after that", time.Since(begun).Round(time.Millisecond))
	_, err = s.leaderAfter(ctx, last, leadTime)
	return err
}

// hear listens to what a process says.
func (s *leading) hear(m *member, line []byte) {
	if bytes.Contains(line, []byte(saysElected)) {
		select {
		case s.elected <- m:
		default: // a hundred elections nobody asked about
		}
	}
}

// successor waits until another one than before leads.
func (s *leading) successor(ctx context.Context, before *member) (*member, error) {
	timer := time.NewTimer(10 * leadTTL)
	defer timer.Stop()
	for {
		select {
		case m := <-s.elected:
			if m != before {
				return m, nil
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-timer.C:
			return nil, errors.New("nobody leads")
		}
	}
}

// leaderAfter lets d pass, and returns who leads then: on a machine that is very busy
// it may not be the one who did.
func (s *leading) leaderAfter(ctx context.Context, leader *member, d time.Duration) (*member, error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case leader = <-s.elected:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-timer.C:
			return leader, nil
		}
	}
}

// stopAll stops all processes at once, but for those that were killed.
func (s *leading) stopAll() error {
	var errs []error
	for _, m := range s.members {
		m.stop()
	}
	for _, m := range s.members {
		if !m.killed {
			errs = append(errs, m.stopped())
		}
	}
	return errors.Join(errs...)
}

//go:build unix

package filestore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
	"github.com/lockfx/lockfx/internal/storemodel"
)

const processes = 8

// competition is what came of processes that took turns at a resource.
type competition struct {
	holds     int
	byProcess error // what they found themselves: another one inside, by the system's lock
	byJournal error // what the journal shows
}

// compete lets processes take turns at a resource, each so often.
func compete(t *testing.T, part string, holds int) competition {
	t.Helper()
	dir, guarded := newDir(t), resource{newDir(t)}
	var all sync.WaitGroup
	faults := make([]error, processes)
	for i := range processes {
		all.Go(func() {
			out, err := process(t, part, dir, guarded.dir+" "+strconv.Itoa(holds)).CombinedOutput()
			if err != nil {
				faults[i] = fmt.Errorf("process %d: %w: %s", i, err, bytes.TrimSpace(out))
			}
		})
	}
	all.Wait()
	done, err := guarded.check(nil)
	return competition{holds: done, byProcess: errors.Join(faults...), byJournal: err}
}

func TestProcessesNeverOverlap(t *testing.T) {
	if c := compete(t, "take turns", 25); c != (competition{holds: processes * 25}) {
		t.Errorf("%+v", c)
	}
}

// The planted faults: a store that grants to everybody, and one whose tokens don't rise.
// Each of the two detectors has to notice the overlap by itself.
func TestOverlapOfProcessesIsNoticed(t *testing.T) {
	if c := compete(t, "take turns by a phantom lock", 50); c.byProcess == nil || c.byJournal == nil {
		t.Errorf("a phantom lock: %+v", c)
	}
	if c := compete(t, "take turns with a stale token", 50); c.byJournal == nil {
		t.Errorf("a stale token: %+v", c)
	}
}

func init() {
	takeTurns := func(wrap func(lockfx.Store) lockfx.Store, work func(resource) func()) func(dir, arg string) error {
		return func(dir, arg string) error {
			guarded, holds, _ := strings.Cut(arg, " ")
			n, err := strconv.Atoi(holds)
			if err != nil {
				return err
			}
			s, err := filestore.New(dir)
			if err != nil {
				return err
			}
			for range n {
				if err := hold(wrap(s), s, resource{guarded}, work(resource{guarded})); err != nil {
					return err
				}
			}
			return s.Close(ctx)
		}
	}
	honest := func(s lockfx.Store) lockfx.Store { return s }
	atOnce := func(resource) func() { return func() {} }
	parts["take turns"] = takeTurns(honest, atOnce)
	parts["take turns with a stale token"] = takeTurns(func(s lockfx.Store) lockfx.Store { return staleTokens{s} }, atOnce)
	// Who is inside stays until everybody has come, so that the overlap is no matter of luck.
	parts["take turns by a phantom lock"] = takeTurns(func(lockfx.Store) lockfx.Store { return storemodel.Phantom{} }, resource.waitForAll)
}

// staleTokens hands out one token for all.
type staleTokens struct{ lockfx.Store }

func (s staleTokens) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	g, err := s.Store.Acquire(ctx, key, ttl)
	if g.OK {
		_, err = s.Store.Release(ctx, key, g.Token)
		g.Token = 1
	}
	return g, err
}

func (staleTokens) Renew(context.Context, string, lockfx.Token, time.Duration) (bool, error) {
	return true, nil
}

func (staleTokens) Release(context.Context, string, lockfx.Token) (bool, error) { return true, nil }

// hold waits for the lease in the order that a waiter keeps, and uses the resource once.
func hold(s lockfx.Store, w lockfx.Watcher, guarded resource, work func()) error {
	label := lockfx.WithLabel(ctx, strconv.Itoa(os.Getpid()))
	g, err := s.Acquire(label, "nightly", time.Hour)
	if err != nil {
		return err
	}
	if !g.OK {
		freed, stop, err := w.Watch(ctx, "nightly")
		if err != nil {
			return err
		}
		defer stop()
		for {
			if g, err = s.Acquire(label, "nightly", time.Hour); err != nil {
				return err
			}
			if g.OK {
				break
			}
			if !wakes(freed) {
				return fmt.Errorf("no signal, and held by %s", g.HeldBy)
			}
		}
	}
	if err := guarded.use(g.Token, work); err != nil {
		return err
	}
	if err := mustBeTrue(s.Renew(ctx, "nightly", g.Token, time.Hour)); err != nil {
		return fmt.Errorf("renew: %w", err)
	}
	if err := mustBeTrue(s.Release(ctx, "nightly", g.Token)); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	return nil
}

// killAtRandom lets workers take turns without end, kills one after the other at random
// moments, and breaks the lease of a dead one by its label. It returns how many holds
// there were and what is wrong with them.
func killAtRandom(t *testing.T, part string, kills int) (holds int, err error) {
	t.Helper()
	dir, guarded := newDir(t), resource{newDir(t)}
	s := open(t, dir)
	start := func() *exec.Cmd {
		worker := process(t, part, dir, guarded.dir+" 1000000000")
		var said bytes.Buffer
		worker.Stdout, worker.Stderr = &said, &said
		if err := worker.Start(); err != nil {
			t.Fatal(err)
		}
		return worker
	}
	workers := make([]*exec.Cmd, 4)
	for i := range workers {
		workers[i] = start()
	}
	dead := map[int]bool{}
	bury := func(worker *exec.Cmd) error {
		if err := worker.Process.Kill(); err != nil {
			return err
		}
		if err := worker.Wait(); !killed(err) {
			return fmt.Errorf("a worker ended by itself: %w: %s", err, worker.Stdout)
		}
		dead[worker.Process.Pid] = true
		l, err := s.Inspect(ctx, "nightly")
		if err == nil && l.Label == strconv.Itoa(worker.Process.Pid) {
			// Nobody but the dead one could have given this lease back.
			err = mustBeTrue(s.Break(ctx, "nightly"))
		}
		return err
	}
	var faults []error
	for range kills {
		time.Sleep(rand.N(20 * time.Millisecond)) // any moment is as good
		i := rand.IntN(len(workers))
		faults = append(faults, bury(workers[i]))
		workers[i] = start()
	}
	for _, worker := range workers {
		faults = append(faults, bury(worker))
	}
	holds, err = guarded.check(dead)
	if left := filesIn(t, dir, "*.tmp"); len(left) > 2 {
		faults = append(faults, fmt.Errorf("left behind: %v", left))
	}
	faults = append(faults, err, mustBeTrue(acquires(s)))
	return holds, errors.Join(faults...)
}

func acquires(s lockfx.Store) (bool, error) {
	g, err := s.Acquire(ctx, "nightly", time.Hour)
	return g.OK, err
}

func TestKillAtRandomMoments(t *testing.T) {
	holds, err := killAtRandom(t, "take turns", 20)
	if err != nil || holds == 0 {
		t.Errorf("%d holds: %v", holds, err)
	}
}

// A process kills itself at some moments of an acquisition: before each step, and after
// some bytes that are written. The real thing of what the tests of crashes play.
func killAtMoments(t *testing.T, stride int) (crashes int, err error) {
	t.Helper()
	dir := newDir(t)
	s := open(t, dir)
	var last lockfx.Token
	for n := 1; ; n += stride {
		out, err := process(t, "kill yourself", dir, strconv.Itoa(n)).CombinedOutput()
		if err == nil {
			return crashes, nil // it came to its end before
		}
		if !killed(err) {
			return crashes, fmt.Errorf("moment %d: %w: %s", n, err, out)
		}
		crashes++
		l, err := s.Inspect(ctx, "nightly")
		if err != nil {
			return crashes, fmt.Errorf("moment %d: %w", n, err)
		}
		if l.Token != 0 {
			if err := mustBeTrue(s.Break(ctx, "nightly")); err != nil {
				return crashes, err
			}
		}
		g, err := s.Acquire(ctx, "nightly", time.Hour)
		if err != nil || !g.OK || g.Token <= max(last, l.Token) {
			return crashes, fmt.Errorf("moment %d: %+v after %v and %+v: %w", n, g, last, l, err)
		}
		last = g.Token
		if err := mustBeTrue(s.Release(ctx, "nightly", g.Token)); err != nil {
			return crashes, err
		}
	}
}

func TestKillWhileWriting(t *testing.T) {
	crashes, err := killAtMoments(t, 41)
	if err != nil || crashes < 10 {
		t.Errorf("%d crashes: %v", crashes, err)
	}
}

func init() {
	parts["kill yourself"] = func(dir, arg string) error {
		n, err := strconv.Atoi(arg)
		if err != nil {
			return err
		}
		s, err := filestore.New(dir)
		if err != nil {
			return err
		}
		crashAt(s, n, 1, killMyself)
		_, err = acquired(s, "nightly")
		return err
	}
}

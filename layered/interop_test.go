package layered

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
)

// tool returns the path of a program that a test shares locks with. There is no
// substitute for the real one, so a missing one is a fault.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v; scripts/install-servers.sh installs it", err)
	}
	return path
}

func TestInteropWithFlock(t *testing.T) {
	flock := tool(t, "flock")
	path := filepath.Join(t.TempDir(), "shared.lock")
	opts := []Option{WithFile(path), WithScope(Scope{Poll: Off}), WithTimeoutResult(0)}
	t.Cleanup(files.CloseIdle)

	attempt := func() State {
		res, err := WithLock(t.Context(), 0, nothing[int], opts...)
		must(t, err)
		return res.State
	}
	theirAttempt := func() bool {
		err := exec.Command(flock, "--nonblock", "--conflict-exit-code", "75", path, "true").Run()
		var exit *exec.ExitError
		if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 75) {
			t.Fatal(err)
		}
		return err == nil
	}

	_, err := WithLock(t.Context(), 0, func(context.Context, Call[int]) (int, error) {
		if theirAttempt() {
			t.Error("flock(1) got what we hold")
		}
		return 0, nil
	}, opts...)
	must(t, err)
	if !theirAttempt() {
		t.Error("flock(1) was refused although it is free")
	}

	theirs := startCommand(t, exec.Command(flock, path, "sh", "-c", "echo held; read line; echo released"))
	theirs.expect("held")
	if s := attempt(); s != StateTimeout {
		t.Errorf("we got what flock(1) holds: %v", s)
	}
	go func() {
		eventually(t, "we wait", func() bool { return files.Parked() == 1 })
		theirs.tell()
	}()
	_, err = WithLock(t.Context(), 0, func(context.Context, Call[int]) (int, error) {
		theirs.expect("released")
		return 0, nil
	}, WithFile(path), WithScope(Scope{Poll: Off}))
	must(t, err)
	theirs.wait()
	if s := attempt(); s != StateExecuted {
		t.Errorf("we were refused although it is free: %v", s)
	}
}

// node is npm's proper-lockfile, ready to run, and a path that it shares with us.
type node struct {
	t     *testing.T
	dir   string
	path  string // proper-lockfile locks path + ".lock"
	stale time.Duration
}

func newNode(t *testing.T) node {
	t.Helper()
	tool(t, "node")
	npm := tool(t, "npm")
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "peer.js"} {
		text, err := os.ReadFile(filepath.Join("testdata", "interop", name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	install := exec.Command(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	return node{t, dir, "", 2 * time.Second}
}

// at returns n on a path of its own.
func (n node) at(t *testing.T) node {
	n.t, n.path = t, filepath.Join(t.TempDir(), "shared")
	return n
}

func (n node) run(what string, more ...string) *actor {
	n.t.Helper()
	args := append([]string{"peer.js", what, n.path, strconv.FormatInt(n.stale.Milliseconds(), 10)}, more...)
	cmd := exec.Command("node", args...)
	cmd.Dir = n.dir
	return startCommand(n.t, cmd)
}

// says returns what a run with a single answer answers.
func (n node) says(what string) string {
	n.t.Helper()
	a := n.run(what)
	line := <-a.lines
	a.wait()
	return line
}

func (n node) options() []Option {
	return []Option{WithFile(n.path), WithScope(processScopes["poll"]), WithStale(n.stale)}
}

func (n node) weTry() State {
	n.t.Helper()
	res, err := WithLock(n.t.Context(), 0, nothing[int], append(n.options(), WithTimeoutResult(0))...)
	acquired(n.t, err)
	return res.State
}

// untilUndisturbed repeats what a machine that is too busy can disturb: it makes a
// holder refresh too late.
func untilUndisturbed(t *testing.T, run func() (disturbed bool)) {
	t.Helper()
	for range 5 {
		if !run() {
			return
		}
	}
	t.Error("the lock was lost each time")
}

func TestInteropWithProperLockfile(t *testing.T) {
	installed := newNode(t)
	// Longer than a stale time, so that refreshes have to be seen by the other side.
	const long = 3 * time.Second

	t.Run("they are excluded while we hold", func(t *testing.T) {
		t.Parallel()
		untilUndisturbed(t, func() (lost bool) {
			n := installed.at(t)
			_, err := WithLock(t.Context(), 0, func(ctx context.Context, _ Call[int]) (int, error) {
				for start := time.Now(); time.Since(start) < long; {
					if s := n.says("try"); s != "busy" {
						<-ctx.Done() // then we must have been too late, and know it
						return 0, nil
					}
				}
				return 0, nil
			}, n.options()...)
			if errors.Is(err, lockfx.ErrLost) {
				return true
			}
			must(t, err)
			if s := n.says("try"); s != "held" {
				t.Errorf("they say %q when it is free", s)
			}
			return false
		})
	})

	t.Run("we are excluded while they hold", func(t *testing.T) {
		t.Parallel()
		untilUndisturbed(t, func() (lost bool) {
			n := installed.at(t)
			theirs := n.run("hold")
			theirs.expect("held")
			for start := time.Now(); time.Since(start) < long; time.Sleep(10 * time.Millisecond) {
				if n.weTry() != StateTimeout {
					theirs.expect("lost") // then they must have been too late, and know it
					theirs.kill()
					return true
				}
			}
			go theirs.tell()
			_, err := WithLock(t.Context(), 0, func(context.Context, Call[int]) (int, error) {
				theirs.expect("released")
				return 0, nil
			}, n.options()...)
			acquired(t, err)
			theirs.wait()
			return false
		})
	})

	t.Run("we take over from one that was killed", func(t *testing.T) {
		t.Parallel()
		n := installed.at(t)
		before := time.Now()
		theirs := n.run("hold")
		theirs.expect("held")
		theirs.kill()
		if s := n.weTry(); s != StateTimeout && time.Since(before) < n.stale {
			t.Errorf("%v, although it can't be stale yet", s)
		}
		_, err := WithLock(t.Context(), 0, nothing[int], n.options()...)
		acquired(t, err)
	})

	t.Run("they take over from ours that was killed", func(t *testing.T) {
		t.Parallel()
		n := installed.at(t)
		r := role{Do: "hold", Dir: filepath.Dir(n.path), Scope: processScopes["poll"], Stale: n.stale}
		path, err := LockFile(r.options()...)
		must(t, err)
		n.path = path
		before := time.Now()
		ours := start(t, r)
		ours.expect("held")
		ours.kill()
		if s := n.says("try"); s != "busy" && time.Since(before) < n.stale {
			t.Errorf("they say %q, although it can't be stale yet", s)
		}
		theirs := n.run("hold")
		theirs.expect("held")
		theirs.tell()
		theirs.expect("released")
	})

	t.Run("we learn that they took over from us", func(t *testing.T) {
		t.Parallel()
		n := installed.at(t)
		_, err := WithLock(t.Context(), 0, func(ctx context.Context, call Call[int]) (int, error) {
			// As if this process had slept: the directory is old for them.
			old := time.Now().Add(-time.Hour)
			must(t, os.Chtimes(call.Lock.File+pollSuffix, old, old))
			theirs := n.run("hold")
			theirs.expect("held")
			<-ctx.Done()
			theirs.tell()
			theirs.expect("released") // we have left their lock alone
			return 0, nil
		}, n.options()...)
		if !errors.Is(err, lockfx.ErrLost) {
			t.Errorf("err = %v", err)
		}
	})

	t.Run("both contend", func(t *testing.T) {
		t.Parallel()
		n := installed.at(t)
		n.stale = defaultStale // nobody dies here
		const processes, holds = 2, 50
		r := role{Do: "hammer", Dir: filepath.Dir(n.path), Scope: processScopes["poll"], Stale: n.stale, Holds: holds}
		path, err := LockFile(r.options()...)
		must(t, err)
		n.path = path
		var actors []*actor
		for range processes {
			actors = append(actors, start(t, r), n.run("hammer", r.Dir, strconv.Itoa(holds)))
		}
		for _, a := range actors {
			for line := range a.lines {
				t.Errorf("%v says %q", a.cmd.Args, line)
			}
			must(t, a.cmd.Wait())
		}
		visits, byMark, byLog := detected(t, r.Dir)
		if visits != 2*processes*holds || byMark != 0 || byLog != 0 {
			t.Errorf("%d visits, %d and %d overlaps", visits, byMark, byLog)
		}
	})
}

package layered

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/layered/internal/fifo"
)

// Tests with several processes run the test binary again, as an actor whose role is
// in the environment. It writes lines to its output, and goes on when it reads one.
const roleVariable = "LAYERED_TEST_ROLE"

// What somebody else may do to the lock file. Before the release it does no harm: those
// who wait for the old file look whether it is still the one at the path. After the
// release, one who has just looked holds the old file, and the next a new one.
const (
	unlinkBeforeRelease = "unlink before release"
	unlinkAfterRelease  = "unlink after release"
)

// role is what an actor does.
type role struct {
	Do    string // "hammer", "hold" or "try"
	User  user   // as whom; nobody else by default
	Dir   string
	File  string
	Scope Scope
	Stale time.Duration
	Holds int
	Hold  time.Duration // how long each hold lasts
	Lasts time.Duration // how long to go on
	Fault string        // a fault planted into a hammer
	Sweep bool          // a hammer removes the file after each hold, unless it is held
}

// user is who a process runs as. Only root can become somebody else; anybody else stays
// who they are, and shares with nobody.
type user struct{ UID, GID, Group, Umask int }

func (r role) options() []Option {
	opts := []Option{WithKey("contended"), WithScope(r.Scope)}
	if r.File != "" {
		opts = append(opts, WithFile(r.File))
	}
	if r.Dir != "" {
		opts = append(opts, WithDir(r.Dir))
	}
	if r.Stale != 0 {
		opts = append(opts, WithStale(r.Stale))
	}
	return opts
}

var roles = map[string]func(role) error{}

func init() {
	roles["hammer"], roles["hold"], roles["try"] = hammer, holdUntilTold, try
}

func play(text string) int {
	var r role
	err := json.Unmarshal([]byte(text), &r)
	if err == nil {
		err = r.User.become()
	}
	if err == nil {
		err = roles[r.Do](r)
	}
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	return 0
}

// actor is a process that plays a role.
type actor struct {
	t     *testing.T
	cmd   *exec.Cmd
	input io.WriteCloser
	lines chan string
}

func start(t *testing.T, r role) *actor {
	t.Helper()
	return startIn(t, r, nil)
}

func startIn(t *testing.T, r role, attributes *syscall.SysProcAttr) *actor {
	t.Helper()
	text, err := json.Marshal(r)
	must(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+string(text))
	cmd.SysProcAttr = attributes
	return startCommand(t, cmd)
}

func startCommand(t *testing.T, cmd *exec.Cmd) *actor {
	t.Helper()
	input, err := cmd.StdinPipe()
	must(t, err)
	output, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	a := &actor{t, cmd, input, make(chan string)}
	go func() {
		defer close(a.lines)
		for scanner := bufio.NewScanner(output); scanner.Scan(); {
			a.lines <- scanner.Text()
		}
	}()
	t.Cleanup(a.kill)
	return a
}

// expect waits for the next line, which must begin with want.
func (a *actor) expect(want string) string {
	a.t.Helper()
	line := <-a.lines
	if !strings.HasPrefix(line, want) {
		a.t.Fatalf("process %d says %q, want %q", a.cmd.Process.Pid, line, want)
	}
	return line
}

func (a *actor) tell() { _, _ = io.WriteString(a.input, "go on\n") }

// kill ends the process, if it has not ended, without giving it a chance.
func (a *actor) kill() {
	_ = a.cmd.Process.Kill()
	a.wait()
}

func (a *actor) wait() {
	for range a.lines { // until the process has closed its output
	}
	_ = a.cmd.Wait()
}

// holdUntilTold holds the lock until a line comes, and says how it went.
func holdUntilTold(r role) error {
	told := make(chan struct{})
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		close(told)
	}()
	_, err := WithLock(context.Background(), 0, func(ctx context.Context, _ Call[int]) (int, error) {
		fmt.Println("held")
		select {
		case <-told:
			fmt.Println("releasing", time.Now().UnixNano())
		case <-ctx.Done():
			fmt.Println("lost", context.Cause(ctx))
		}
		return 0, nil
	}, r.options()...)
	if errors.Is(err, lockfx.ErrLost) {
		fmt.Println("told of the loss")
		return nil
	}
	return err
}

// try makes one attempt, and says what came of it.
func try(r role) error {
	res, err := WithLock(context.Background(), 0, nothing[int], append(r.options(), WithTimeoutResult(0))...)
	fmt.Println(res.State, err)
	return nil
}

// hammer takes the lock again and again, from two goroutines with a Locker each, and
// looks for overlaps.
func hammer(r role) error {
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		wg.Go(func() {
			locker, err := New()
			for range r.Holds / len(errs) {
				if err != nil {
					break
				}
				var res Result[int, string]
				res, err = WithLock(context.Background(), 0, func(_ context.Context, call Call[int]) (string, error) {
					if err := visitCriticalSection(r.Dir); err != nil {
						return "", err
					}
					if r.Fault == unlinkBeforeRelease {
						return "", os.Remove(call.Lock.File)
					}
					return call.Lock.File, nil
				}, append(r.options(), WithLocker(locker))...)
				if r.Fault == unlinkAfterRelease {
					_ = os.Remove(res.Value)
				}
				err = r.expected(err)
				if r.Sweep {
					path, _ := LockFile(r.options()...)
					if removing := files.Remove(path); !errors.Is(removing, fifo.ErrBusy) {
						err = errors.Join(err, removing)
					}
				}
			}
			errs[i] = err
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// expected returns err unless the planted fault accounts for it: a holder learns that its
// file was removed.
func (r role) expected(err error) error {
	switch lost := errors.Is(err, lockfx.ErrLost); {
	case r.Fault == unlinkBeforeRelease && err == nil:
		return errors.New("the holder did not learn that its file was removed")
	case r.Fault != "" && lost:
		return nil
	}
	return err
}

// Two detectors of overlaps that know nothing of each other: a file that one visitor
// alone can make, and a log in which everybody who enters must leave before the next.
const (
	markName = "inside"
	logName  = "visits.log"
	overlaps = "overlaps.log"
)

func visitCriticalSection(dir string) error {
	id := fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixNano())
	if err := appendLine(filepath.Join(dir, logName), "enter "+id); err != nil {
		return err
	}
	mark, err := os.OpenFile(filepath.Join(dir, markName), os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, os.ErrExist):
		if err := appendLine(filepath.Join(dir, overlaps), id); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		defer os.Remove(mark.Name()) //nolint:errcheck // the next visitor would find it
		if err := mark.Close(); err != nil {
			return err
		}
	}
	return appendLine(filepath.Join(dir, logName), "leave "+id)
}

func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// detected returns the visits, and the overlaps that each detector saw.
func detected(t *testing.T, dir string) (visits, byMark, byLog int) {
	t.Helper()
	lines := func(name string) []string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if !errors.Is(err, os.ErrNotExist) {
			must(t, err)
		}
		return strings.Fields(strings.ReplaceAll(string(text), " ", ":"))
	}
	log := lines(logName)
	for i, line := range log {
		if id, ok := strings.CutPrefix(line, "enter:"); ok {
			visits++
			if i+1 >= len(log) || log[i+1] != "leave:"+id {
				byLog++
			}
		}
	}
	return visits, len(lines(overlaps)), byLog
}

// runHammers lets processes contend and returns what the detectors saw.
func runHammers(t *testing.T, processes int, r role) (visits, byMark, byLog int) {
	t.Helper()
	r.Do, r.Dir = "hammer", t.TempDir()
	var actors []*actor
	for range processes {
		actors = append(actors, start(t, r))
	}
	for _, a := range actors {
		for line := range a.lines {
			t.Errorf("process %d says %q", a.cmd.Process.Pid, line)
		}
		must(t, a.cmd.Wait())
	}
	return detected(t, r.Dir)
}

// Every way to exclude processes, without and with the layers within a process.
var processScopes = map[string]Scope{
	"default":    {},
	"flock":      {Memory: Off, Worker: Off, Flock: On, Poll: Off},
	"poll":       {Memory: Off, Worker: Off, Flock: Off, Poll: On},
	"flock+poll": {Memory: Off, Worker: Off, Flock: On, Poll: On},
	"all":        {Memory: On, Worker: On, Flock: On, Poll: On},
}

func TestProcessesExcludeEachOther(t *testing.T) {
	const processes, holds = 3, 40
	for name, scope := range processScopes {
		t.Run(name, func(t *testing.T) {
			visits, byMark, byLog := runHammers(t, processes, role{Scope: scope, Holds: holds})
			if visits != processes*holds || byMark != 0 || byLog != 0 {
				t.Errorf("%d visits, %d and %d overlaps", visits, byMark, byLog)
			}
		})
	}
}

func TestCase_H01_RemovedFileGivesNoSecondHolder(t *testing.T) {
	const processes, holds = 6, 100
	r := role{Scope: processScopes["flock"], Holds: holds, Fault: unlinkBeforeRelease}
	if visits, byMark, byLog := runHammers(t, processes, r); visits != processes*holds || byMark != 0 || byLog != 0 {
		t.Errorf("%d visits, %d and %d overlaps", visits, byMark, byLog)
	}
}

func TestDetectorsSeeAFileUnlinkedAfterRelease(t *testing.T) { plantUnlink(t) }

// plantUnlink plants the classic fault of lock files, and returns what the detectors
// saw of it in how many visits.
func plantUnlink(t *testing.T) (visits, byMark, byLog int) {
	t.Helper()
	for range 20 {
		visits, byMark, byLog = runHammers(t, 6, role{Scope: processScopes["flock"], Holds: 200, Fault: unlinkAfterRelease})
		if byMark > 0 && byLog > 0 {
			return visits, byMark, byLog
		}
	}
	t.Error("the detectors are blind")
	return visits, byMark, byLog
}

func TestKilledHolderIsFollowed(t *testing.T) {
	for name, stale := range map[string]time.Duration{"flock": 0, "poll": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			r := role{Do: "hold", Dir: t.TempDir(), Scope: processScopes[name], Stale: stale}
			a := start(t, r)
			a.expect("held")
			a.kill()
			_, err := WithLock(t.Context(), 0, nothing[int], r.options()...)
			acquired(t, err)
		})
	}
	files.CloseIdle()
}

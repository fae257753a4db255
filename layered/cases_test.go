package layered

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/layered/internal/flock"
)

// useFiles makes the flock layer of this process open its files by open.
func useFiles(t *testing.T, open func(string) (flock.File, error)) {
	t.Helper()
	before := files
	files = &flock.Files{OpenFile: open}
	t.Cleanup(func() { files = before })
}

// oddFile is a lock file of a system that answers as it is told.
type oddFile struct {
	errno                syscall.Errno // of every attempt
	busy                 bool
	unlock               error
	tries, waits, closed atomic.Int32
	free                 chan struct{}
}

func (f *oddFile) TryLock() (bool, error) {
	f.tries.Add(1)
	if f.errno != 0 {
		return false, os.NewSyscallError("flock", f.errno)
	}
	return !f.busy, nil
}

func (f *oddFile) Lock() error {
	f.waits.Add(1)
	<-f.free
	return nil
}

func (f *oddFile) Unlock() error             { return f.unlock }
func (f *oddFile) IsAt(string) (bool, error) { return true, nil }

func (f *oddFile) Close() error {
	f.closed.Add(1)
	return nil
}

func (f *oddFile) open(string) (flock.File, error) { return f, nil }

func TestCase_H02_LeftFileIsNoHolder(t *testing.T) {
	opts, p := everything(t)
	must(t, os.MkdirAll(filepath.Dir(p.path), 0o700))
	must(t, os.WriteFile(p.path, []byte("left by a crash"), 0o600))
	_, err := WithLock(t.Context(), "in", nothing[string], append(opts, WithTimeout(0))...)
	must(t, err)
}

func TestCase_H03_PidInTheFileMeansNothing(t *testing.T) {
	opts, p := everything(t)
	must(t, os.MkdirAll(filepath.Dir(p.path), 0o700))
	must(t, os.WriteFile(p.path, []byte(strconv.Itoa(os.Getpid())), 0o600)) // it lives
	_, err := WithLock(t.Context(), "in", nothing[string], append(opts, WithTimeout(0))...)
	must(t, err)
}

func TestCase_H04_FailedUnlockStillFreesTheInnerLayers(t *testing.T) {
	file := &oddFile{unlock: syscall.EIO}
	useFiles(t, file.open)
	opts, p := everything(t)
	mine := errors.New("mine")
	_, err := WithLock(t.Context(), "in", func(_ context.Context, call Call[string]) (int, error) {
		must(t, os.Remove(call.Lock.File+pollSuffix)) // poll fails to unlock as well
		return 0, mine
	}, opts...)
	for _, want := range []error{mine, syscall.EIO, lockfx.ErrLost} {
		if !errors.Is(err, want) {
			t.Errorf("err = %v, want %v in it", err, want)
		}
	}
	if !strings.HasPrefix(err.Error(), "mine\n") {
		t.Errorf("the action's error is not the first: %v", err)
	}
	if file.closed.Load() != 1 {
		t.Error("the file that could not be unlocked was not closed")
	}
	p.allFree()
}

// The system says what it says to everybody, so nobody else holds flock.
func TestCase_H05_SystemWithoutLocks(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENOLCK, syscall.ENOSYS, syscall.EOPNOTSUPP, syscall.ENOTSUP, syscall.EINVAL} {
		useFiles(t, (&oddFile{errno: errno}).open)
		opts, _ := everything(t)
		res, err := WithLock(t.Context(), "in", nothing[string], append(opts, auto)...)
		must(t, err)
		if f := res.Lock.Flock; f.Outcome != OutcomeSkipped || f.Errno != errno || !strings.Contains(f.Reason, errno.Error()) {
			t.Errorf("flock %+v", f)
		}
		if res.Lock.Poll.Outcome != OutcomeOn {
			t.Errorf("poll %+v", res.Lock.Poll)
		}
		refusedByFlock(t, errno, opts...)
		// Whoever shares a file by flock(1) does not look at the poll layer.
		refusedByFlock(t, errno, WithFile(filepath.Join(t.TempDir(), "file")))
	}
}

var auto = WithScope(Scope{Flock: Auto, Poll: Auto})

// refusedByFlock fails unless a call is refused by the flock layer, for want of no time.
func refusedByFlock(t *testing.T, errno error, opts ...Option) (text string) {
	t.Helper()
	res, err := WithLock(t.Context(), "in", nothing[string], opts...)
	var layer *LayerError
	if !errors.As(err, &layer) || layer.Layer != LayerFlock || !errors.Is(err, errno) || errors.Is(err, lockfx.ErrTimeout) || res.State == StateExecuted {
		t.Fatalf("%v, %v; want %v of the flock layer", res.State, err, errno)
	}
	return err.Error()
}

func TestCase_H07_LongAndOddKeysHaveFilesOfTheirOwn(t *testing.T) {
	long := strings.Repeat("x", 4096)
	seen := map[string]string{}
	for _, key := range []string{
		"", "a", "A", "a/b", "a_b", `a\b`, "../../etc/passwd", ".", "..", "-rf", "a\x00b", "a\xffb", "日本語", "con", "a.lock",
		long, long + "y", long[:len(long)-1] + "y", " ", "\n",
	} {
		for _, namespace := range []string{"", "a", "ab"} {
			file := fileName(namespace, key)
			checkFileName(t, file)
			if other, taken := seen[strings.ToLower(file)]; taken {
				t.Errorf("%q and %q share %s", key, other, file)
			}
			seen[strings.ToLower(file)] = namespace + "/" + key
		}
	}
	if fileName("a", "bc") == fileName("ab", "c") {
		t.Error("namespace and key run into each other")
	}
	if got := fileName("", "reports/nightly"); !strings.HasPrefix(got, "reports_nightly-") {
		t.Errorf("the file of reports/nightly is %s", got)
	}
}

func checkFileName(t *testing.T, file string) {
	t.Helper()
	const longestSuffix = len(".lock.break-") + 16
	if filepath.Base(file) != file || len(file)+longestSuffix > 255 || file[0] == '.' || file[0] == '-' {
		t.Errorf("file name %q", file)
	}
	for _, c := range []byte(file) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`/\:*?"<>|`, c) >= 0 {
			t.Errorf("file name %q", file)
		}
	}
}

func FuzzFileName(f *testing.F) {
	f.Add("", "a", "a", "")
	f.Add("n", "a/../b", "n", "a/../c")
	f.Fuzz(func(t *testing.T, ns1, key1, ns2, key2 string) {
		one, two := fileName(ns1, key1), fileName(ns2, key2)
		checkFileName(t, one)
		if (one == two) != (ns1 == ns2 && key1 == key2) {
			t.Errorf("(%q, %q) has %s, (%q, %q) has %s", ns1, key1, one, ns2, key2, two)
		}
	})
}

func TestCase_H09_ZeroTimeoutIsOneAttempt(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		file := &oddFile{busy: true}
		useFiles(t, file.open)
		start := time.Now()
		_, err := WithLock(t.Context(), "in", nothing[string], WithDir(dir), WithKey("k"), WithTimeout(0))
		if !errors.Is(err, lockfx.ErrTimeout) || file.tries.Load() != 1 || file.waits.Load() != 0 {
			t.Errorf("err = %v after %d attempts and %d waits", err, file.tries.Load(), file.waits.Load())
		}
		path, err := LockFile(WithDir(dir), WithKey("k"))
		must(t, err)
		must(t, os.Mkdir(path+pollSuffix, 0o700))
		must(t, os.Chtimes(path+pollSuffix, start, start))
		_, err = WithLock(t.Context(), "in", nothing[string], WithDir(dir), WithKey("k"), WithTimeout(0), onlyIn(LayerPoll))
		if !errors.Is(err, lockfx.ErrTimeout) {
			t.Errorf("err = %v", err)
		}
		must(t, os.Remove(path+pollSuffix))
		// And it succeeds when it can.
		_, err = WithLock(t.Context(), "in", nothing[string], WithDir(dir), WithKey("k"), WithTimeout(0), onlyIn(LayerPoll))
		must(t, err)
		if slept := time.Since(start); slept != 0 {
			t.Errorf("it slept for %v", slept)
		}
	})
}

func TestCase_H10_PredicateSeesWhatTheOtherDid(t *testing.T) {
	opts, p := everything(t)
	free := p.contend(LayerFlock)
	var done atomic.Bool // by the other, while we wait
	go func() {
		eventually(t, "it waits", func() bool { return files.Parked() == 1 })
		done.Store(true)
		free()
	}()
	res, err := WithLock(t.Context(), "in", func(context.Context, Call[string]) (int, error) {
		t.Error("the work was done again")
		return 0, nil
	}, append(opts, WithPredicate(func(_ context.Context, call Call[string]) (bool, error) {
		return call.State == StatePredicateBefore || !done.Load(), nil
	}))...)
	if err != nil || res.State != StatePredicateAfter {
		t.Errorf("state %v, err %v", res.State, err)
	}
}

func TestCase_H11_TimeoutRunsNothing(t *testing.T) {
	for l := range Layer(layers) {
		for _, option := range []Option{WithTimeout(0), WithTimeout(1), WithTimeoutResult(0), WithTimeoutResult(1)} {
			opts, p := everything(t)
			free := p.contend(l)
			_, _ = WithLock(t.Context(), "in", func(context.Context, Call[string]) (int, error) {
				t.Errorf("%v: it ran unguarded with %v", l, option)
				return 0, nil
			}, append(opts, option, WithOnCheckFailed(func(context.Context, Call[string]) error {
				t.Error("a timeout is no failed check")
				return nil
			}))...)
			free()
		}
	}
	eventually(t, "no thread sleeps", func() bool { return files.Parked() == 0 })
}

// The time is over before the first layer, and yet nobody is in the way.
func TestFreeLockDoesNotTimeOut(t *testing.T) {
	for l := range Layer(layers) {
		res, err := WithLock(t.Context(), 0, nothing[int], WithKey("k"), WithDir(t.TempDir()), onlyIn(l), WithTimeout(1))
		if err != nil || res.State != StateExecuted {
			t.Errorf("%v: %v, %v", l, res.State, err)
		}
	}
	files.CloseIdle()
}

func TestCase_W01_CancelledWaiterDoesNotSleepOn(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		_, err := WithLock(t.Context(), "in", func(context.Context, Call[string]) (int, error) {
			// An odd time, so that no look falls on it.
			ctx, cancel := context.WithTimeout(t.Context(), 3333333*time.Microsecond)
			defer cancel()
			start := time.Now()
			_, err := WithLock(ctx, "in", nothing[string], WithDir(dir), WithKey("k"), onlyIn(LayerPoll))
			if waited := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || waited != 3333333*time.Microsecond {
				t.Errorf("it returned %v after %v", err, waited)
			}
			return 0, nil
		}, WithDir(dir), WithKey("k"), onlyIn(LayerPoll))
		must(t, err)
	})
}

func TestCase_W02_WaitIsNotCappedByTheStaleTime(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		opts := []Option{WithDir(dir), WithKey("k"), onlyIn(LayerPoll), WithStale(2 * time.Second)}
		_, err := WithLock(t.Context(), "in", func(context.Context, Call[string]) (int, error) {
			_, err := WithLock(t.Context(), "in", nothing[string], append(opts, WithTimeout(time.Hour))...)
			var timeout *TimeoutError
			if !errors.As(err, &timeout) || *timeout != (TimeoutError{LayerPoll, "k", time.Hour}) {
				t.Errorf("err = %v", err)
			}
			if want := `acquire "k": poll layer: timed out after 1h0m0s`; err.Error() != want {
				t.Errorf("err = %v, want %s", err, want)
			}
			return 0, nil
		}, opts...)
		must(t, err)
	})
}

func TestCase_W03_WhoGaveUpBlocksNobody(t *testing.T) {
	for _, l := range []Layer{LayerMemory, LayerWorker, LayerPoll} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			opts := []Option{WithDir(dir), WithKey("k"), onlyIn(l)}
			finish := make(chan struct{})
			var order []string
			var wg sync.WaitGroup
			visit := func(name string, more ...Option) {
				wg.Go(func() {
					res, err := WithLock(t.Context(), "in", func(context.Context, Call[string]) (int, error) {
						if name == "holder" {
							<-finish
						}
						order = append(order, name)
						return 0, nil
					}, append(opts, more...)...)
					if err != nil || (res.State == StateTimeout) != (name == "quitter") {
						t.Errorf("%v: %s ends in %v, %v", l, name, res.State, err)
					}
				})
				synctest.Wait()
			}
			visit("holder")
			visit("quitter", WithTimeoutResult(time.Second))
			visit("patient")
			time.Sleep(2 * time.Second)
			close(finish)
			wg.Wait()
			if got := strings.Join(order, " "); got != "holder patient" {
				t.Errorf("%v: order %s", l, got)
			}
		})
	}
}

func TestCase_W06_OneWaitInTheKernelForAllOfAProcess(t *testing.T) {
	file := &oddFile{busy: true, free: make(chan struct{})}
	useFiles(t, file.open)
	opts := []Option{WithDir(t.TempDir()), WithKey("k"), onlyIn(LayerFlock)}
	path, err := LockFile(opts...)
	must(t, err)
	const waiters = 50
	var ran atomic.Int32
	var wg sync.WaitGroup
	for range waiters {
		wg.Go(func() {
			_, err := WithLock(t.Context(), "in", func(context.Context, Call[string]) (int, error) {
				ran.Add(1)
				return 0, nil
			}, opts...)
			if err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "all wait", func() bool { return files.Waiting(path) == waiters-1 && file.waits.Load() == 1 })
	file.busy = false
	close(file.free)
	wg.Wait()
	if file.waits.Load() != 1 || ran.Load() != waiters {
		t.Errorf("%d waits in the kernel, %d ran", file.waits.Load(), ran.Load())
	}
}

package flock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockfx/lockfx/layered/internal/fifo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// other is a holder that the Files under test do not know of: a file opened anew is
// another owner for the kernel, as one in another process is.
func other(t *testing.T, path string) File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := f.TryLock(); !ok || err != nil {
		t.Fatalf("TryLock of the other = %v, %v", ok, err)
	}
	return f
}

func newFiles(t *testing.T) (*Files, string) {
	t.Helper()
	files := new(Files)
	t.Cleanup(files.CloseIdle)
	return files, filepath.Join(t.TempDir(), "lock")
}

func mustLock(t *testing.T, files *Files, path string) Lock {
	t.Helper()
	l, err := files.Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for !holds() {
		if t.Context().Err() != nil {
			t.Fatal("never: " + what)
		}
		time.Sleep(100 * time.Microsecond)
	}
}

func TestExcludesAndIsExcluded(t *testing.T) {
	files, path := newFiles(t)
	o := other(t, path)
	if _, err := files.TryLock(path); !errors.Is(err, fifo.ErrBusy) {
		t.Errorf("TryLock = %v although another holds it", err)
	}
	must(t, o.Unlock())
	l := mustLock(t, files, path)
	if ok, err := o.TryLock(); ok || err != nil {
		t.Errorf("TryLock of the other = %v, %v although we hold it", ok, err)
	}
	must(t, l.Unlock())
	if ok, err := o.TryLock(); !ok || err != nil {
		t.Errorf("TryLock of the other = %v, %v although it is free", ok, err)
	}
	must(t, o.Close())
}

func TestCachedDescriptorIsNotGrantedTwice(t *testing.T) {
	files, path := newFiles(t)
	must(t, mustLock(t, files, path).Unlock())
	l := mustLock(t, files, path)
	if _, err := files.TryLock(path); !errors.Is(err, fifo.ErrBusy) {
		t.Errorf("TryLock = %v although this process holds it", err)
	}
	must(t, l.Unlock())
}

func TestOneThreadServesAllWaiters(t *testing.T) {
	files, path := newFiles(t)
	o := other(t, path)
	var inside atomic.Int32
	var wg sync.WaitGroup
	const waiters = 20
	for range waiters {
		wg.Go(func() {
			l, err := files.Lock(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			if inside.Add(1) != 1 {
				t.Error("two are inside")
			}
			inside.Add(-1)
			if err := l.Unlock(); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "all wait", func() bool { return files.Waiting(path) == waiters-1 && files.Parked() == 1 })
	must(t, o.Close())
	wg.Wait()
	eventually(t, "no thread sleeps", func() bool { return files.Parked() == 0 })
}

func TestCancelledWaiterReturnsAndItsThreadGivesUp(t *testing.T) {
	files, path := newFiles(t)
	var sleeps atomic.Int32
	files.OpenFile = func(path string) (File, error) {
		f, err := Open(path)
		return &sleepCounted{f, &sleeps}, err
	}
	o := other(t, path)
	errGone := errors.New("gone")
	for range 3 { // the thread of the first serves the next ones as well
		ctx, cancel := context.WithCancelCause(t.Context())
		got := make(chan error)
		go func() {
			_, err := files.Lock(ctx, path)
			got <- err
		}()
		eventually(t, "one is first in line", func() bool { return files.wanted(path) })
		cancel(errGone)
		if err := <-got; !errors.Is(err, errGone) {
			t.Errorf("Lock = %v, want the cause", err)
		}
		if n := files.Parked(); n != 1 {
			t.Errorf("%d threads sleep, want 1", n)
		}
	}
	if n := sleeps.Load(); n > 1 {
		t.Errorf("%d threads were sent to sleep, want 1", n)
	}
	must(t, o.Unlock())
	eventually(t, "the thread gave up", func() bool { return files.Parked() == 0 })
	eventually(t, "the other gets it back", func() bool { ok, err := o.TryLock(); return ok && err == nil })
	must(t, o.Close())
}

type sleepCounted struct {
	File
	sleeps *atomic.Int32
}

func (f *sleepCounted) Lock() error {
	f.sleeps.Add(1)
	return f.File.Lock()
}

func TestNextWaiterTakesTheSleepingThread(t *testing.T) {
	files, path := newFiles(t)
	o := other(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error)
	lock := func(ctx context.Context) {
		l, err := files.Lock(ctx, path)
		if err == nil {
			err = l.Unlock()
		}
		got <- err
	}
	go lock(ctx)
	eventually(t, "the first sleeps", func() bool { return files.wanted(path) })
	go lock(t.Context())
	eventually(t, "the second waits behind", func() bool { return files.Waiting(path) == 1 })
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Errorf("Lock = %v", err)
	}
	eventually(t, "the second has taken over", func() bool { return files.wanted(path) })
	if n := files.Parked(); n != 1 {
		t.Errorf("%d threads sleep, want 1", n)
	}
	must(t, o.Close())
	must(t, <-got)
}

// An attempt that succeeds while a thread of ours still sleeps holds the lock by a
// file of its own: the thread, when it wakes, must not give that one up.
func TestAttemptBesideASleepingThread(t *testing.T) {
	files, path := newFiles(t)
	woken := make(chan struct{})
	files.OpenFile = func(path string) (File, error) {
		f, err := Open(path)
		return &slowToWake{f, woken}, err
	}
	o := other(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error)
	go func() {
		_, err := files.Lock(ctx, path)
		got <- err
	}()
	eventually(t, "one sleeps", func() bool { return files.wanted(path) })
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Errorf("Lock = %v", err)
	}
	must(t, o.Unlock())
	l, err := files.TryLock(path) // the sleeper has not asked the kernel yet
	must(t, err)
	close(woken)
	if ok, err := o.TryLock(); ok || err != nil {
		t.Errorf("the other got it: %v, %v", ok, err)
	}
	must(t, l.Unlock())
	eventually(t, "the thread gave up", func() bool { return files.Parked() == 0 })
	must(t, o.Close())
}

type slowToWake struct {
	File
	woken chan struct{}
}

func (f *slowToWake) Lock() error {
	<-f.woken
	return f.File.Lock()
}

func TestRemovedFileIsOpenedAnew(t *testing.T) {
	files, path := newFiles(t)
	must(t, mustLock(t, files, path).Unlock())
	must(t, os.Remove(path))
	l := mustLock(t, files, path)
	o, err := Open(path)
	must(t, err)
	if ok, _ := o.TryLock(); ok {
		t.Error("the file at the path is not the one that is locked")
	}
	must(t, l.Unlock())
	must(t, o.Close())
}

func TestReplacedWhileWaitingIsOpenedAnew(t *testing.T) {
	files, path := newFiles(t)
	o := other(t, path)
	got := make(chan Lock)
	go func() { got <- mustLock(t, files, path) }()
	eventually(t, "one sleeps", func() bool { return files.wanted(path) })
	must(t, os.Remove(path))
	o2 := other(t, path)
	must(t, o.Close())
	eventually(t, "it sleeps on the new file", func() bool { return files.sleepsOn(path) })
	must(t, o2.Close())
	must(t, (<-got).Unlock())
}

func TestIdleDescriptorsAreBounded(t *testing.T) {
	files, path := newFiles(t)
	open := 0
	files.OpenFile = func(path string) (File, error) {
		open++
		f, err := Open(path)
		return &counted{f, &open}, err
	}
	first := mustLock(t, files, path)
	for i := range 3 * maxIdle {
		must(t, mustLock(t, files, path+strconv.Itoa(i)).Unlock())
	}
	if open != maxIdle+1 {
		t.Errorf("%d files are open, want %d idle ones and the one in use", open, maxIdle)
	}
	if ok, err := first.file.TryLock(); !ok || err != nil {
		t.Errorf("the file in use was closed: %v, %v", ok, err)
	}
	before := open
	must(t, mustLock(t, files, path+strconv.Itoa(3*maxIdle-1)).Unlock())
	if open != before {
		t.Error("the file used last was opened anew")
	}
	must(t, first.Unlock())
	files.CloseIdle()
	if open != 0 {
		t.Errorf("%d files are open after CloseIdle", open)
	}
}

type counted struct {
	File
	open *int
}

func (f *counted) Close() error {
	*f.open--
	return f.File.Close()
}

func TestFailuresHoldNothing(t *testing.T) {
	files, path := newFiles(t)
	for _, tt := range []struct {
		name string
		file broken
	}{
		{"try", broken{try: syscall.ENOLCK}},
		{"wait", broken{busy: true, wait: syscall.ENOLCK}},
		{"look", broken{look: syscall.ENOLCK}},
		{"unlock", broken{unlock: syscall.ENOLCK}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := tt.file
			files.OpenFile = func(string) (File, error) { return &file, nil }
			l, err := files.Lock(t.Context(), path)
			if tt.name == "unlock" {
				must(t, err)
				err = l.Unlock()
			}
			if !errors.Is(err, syscall.ENOLCK) {
				t.Errorf("err = %v, want ENOLCK", err)
			}
			if !file.closed {
				t.Error("the file was left open, and may be locked")
			}
			if files.queue.Len() != 0 {
				t.Error("the turn is still held")
			}
		})
	}
}

// broken is a file of a system that does not lock.
type broken struct {
	busy, closed            bool
	try, wait, look, unlock error
}

func (f *broken) TryLock() (bool, error)    { return !f.busy && f.try == nil, f.try }
func (f *broken) Lock() error               { return f.wait }
func (f *broken) Unlock() error             { return f.unlock }
func (f *broken) IsAt(string) (bool, error) { return true, f.look }

func (f *broken) Close() error {
	f.closed = true
	return nil
}

// wanted reports whether a thread sleeps on path for somebody.
func (f *Files) wanted(path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.parked[path]
	return p != nil && p.wanted
}

// sleepsOn reports whether the thread sleeps on the file that path names now.
func (f *Files) sleepsOn(path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.parked[path]
	if p == nil {
		return false
	}
	at, err := p.file.IsAt(path)
	return at && err == nil
}

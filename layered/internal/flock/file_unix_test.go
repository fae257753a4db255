//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package flock

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOpenRefusesWhatIsNoFileOfOurs(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.WriteFile(at("file"), nil, 0o600))
	must(t, os.Symlink(at("file"), at("link")))
	must(t, os.Symlink(at("nowhere"), at("dangling")))
	must(t, os.Mkdir(at("dir"), 0o700))
	must(t, syscall.Mkfifo(at("fifo"), 0o600))
	for _, tt := range []struct {
		name  string
		errno error
		says  string
	}{
		{"link", syscall.ELOOP, "symbolic link"},
		{"dangling", syscall.ELOOP, "symbolic link"},
		{"dir", syscall.EISDIR, "directory"},
		{"fifo", syscall.EINVAL, "not a regular file"},
		{"none/file", syscall.ENOENT, "no such file"},
	} {
		f, err := Open(at(tt.name))
		if f != nil || !errors.Is(err, tt.errno) || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), at(tt.name)) {
			t.Errorf("Open(%s) = %v, %v", tt.name, f, err)
		}
	}
	if _, err := os.Lstat(at("nowhere")); err == nil {
		t.Error("a file was made through a symbolic link")
	}
}

// As root the owner decides, and otherwise the access rights do.
func TestCase_H06_FileOfAnotherUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	must(t, os.WriteFile(path, nil, 0o600))
	want := syscall.EACCES
	if os.Geteuid() == 0 {
		must(t, os.Chown(path, 65534, -1))
		want = syscall.EPERM
	} else {
		must(t, os.Chmod(path, 0))
	}
	if f, err := Open(path); f != nil || !errors.Is(err, want) {
		t.Errorf("Open = %v, %v; want %v", f, err, want)
	}
}

func TestCase_H12_ChildDoesNotInheritTheLock(t *testing.T) {
	files, path := newFiles(t)
	l := mustLock(t, files, path)
	child := exec.Command("cat") // runs until its input ends
	input, err := child.StdinPipe()
	must(t, err)
	must(t, child.Start())
	// Closing without unlocking, as the end of a process does, frees the lock only if
	// nobody else has the open file.
	must(t, l.file.Close())
	files.queue.Unlock(path)
	o := other(t, path)
	must(t, o.Close())
	must(t, input.Close())
	must(t, child.Wait())
}

// Between its fork and its exec a child has every descriptor, as a duplicate does.
func TestThreadGivesUpWhileAChildIsStarted(t *testing.T) {
	files, path := newFiles(t)
	o := other(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error)
	go func() {
		_, err := files.Lock(ctx, path)
		got <- err
	}()
	eventually(t, "one sleeps", func() bool { return files.wanted(path) })
	files.mu.Lock()
	child, err := unix.Dup(files.parked[path].file.(*unixFile).fd)
	files.mu.Unlock()
	must(t, err)
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Errorf("Lock = %v", err)
	}
	must(t, o.Unlock())
	eventually(t, "the thread woke", func() bool { return files.Parked() == 0 })
	eventually(t, "the other gets it back", func() bool { ok, err := o.TryLock(); return ok && err == nil })
	must(t, o.Close())
	must(t, unix.Close(child))
}

func TestLockFileIsPrivate(t *testing.T) {
	files, path := newFiles(t)
	must(t, mustLock(t, files, path).Unlock())
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

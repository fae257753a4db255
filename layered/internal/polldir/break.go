package polldir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/lockfx/lockfx/layered/internal/fifo"
)

// breakStale takes the stale lock dead away from path. It returns fifo.ErrBusy if
// somebody else does, or has done so.
func breakStale(path string, dead fs.FileInfo, stale time.Duration) error {
	licence, moved := namesFor(path, dead)
	err := os.Mkdir(licence, 0o700)
	if errors.Is(err, fs.ErrExist) {
		dropAbandoned(licence, stale)
		return fifo.ErrBusy
	}
	if err != nil {
		return err
	}
	defer os.Remove(licence) //nolint:errcheck // an empty directory that nobody asks for again
	return moveAway(path, dead, moved)
}

// namesFor names the licence, and where the dead lock goes, after the lock that they
// are for. A fresh lock has another mtime, so a licence for the dead one gives no
// right to it. Both stand beside the lock: a directory that changes its parent may
// get another mtime.
func namesFor(path string, dead fs.FileInfo) (licence, moved string) {
	mtime := strconv.FormatInt(dead.ModTime().UnixNano(), 16)
	return path + ".break-" + mtime, path + ".stale-" + mtime
}

// dropAbandoned removes the licence of a contender that died with it.
func dropAbandoned(licence string, stale time.Duration) {
	if made, err := os.Lstat(licence); err == nil && time.Since(made.ModTime()) > stale {
		_ = os.Remove(licence)
	}
}

// moveAway removes the dead lock if it is still at path. Whoever calls it holds the
// licence.
func moveAway(path string, dead fs.FileInfo, moved string) error {
	there, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !same(there, dead):
		return fifo.ErrBusy
	}
	return moveAside(path, dead, moved)
}

// moveAside moves what is at path, and makes sure that it was the dead lock: this
// contender may have been paused since it looked.
func moveAside(path string, dead fs.FileInfo, moved string) error {
	err := os.Rename(path, moved)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if there, err := os.Lstat(moved); err != nil || !same(there, dead) {
		putBack(moved, path)
		return fifo.ErrBusy
	}
	if err := os.Remove(moved); err != nil {
		putBack(moved, path)
		return fmt.Errorf("break the stale lock: %w", err)
	}
	return nil
}

// putBack gives a fresh lock back to its holder. If somebody took the path
// meanwhile, it stays away, and the holder learns of it at its next refresh.
func putBack(moved, path string) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		_ = os.Rename(moved, path)
		return
	}
	_ = os.Remove(moved)
}

func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime())
}

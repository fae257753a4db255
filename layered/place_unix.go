//go:build unix

package layered

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// tempRoot is where the directories of users are. It is not TMPDIR: processes of one user
// that were started in different ways, by cron, at a terminal or as a service, have
// different ones, and would not exclude each other.
var tempRoot = "/tmp"

func userDir() string {
	return filepath.Join(tempRoot, "lockfx-"+strconv.Itoa(os.Geteuid()))
}

func checkOwner(dir string, there fs.FileInfo) error {
	if stat, ok := there.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("lock directory %s: owned by user %d, this process is user %d: %w", dir, stat.Uid, os.Geteuid(), syscall.EPERM)
	}
	if mode := there.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("lock directory %s: mode %v lets others in, must be 0700: %w", dir, mode, syscall.EPERM)
	}
	return nil
}

//go:build unix

package polldir

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

func ownedByUs(there fs.FileInfo) error {
	stat, ok := there.Sys().(*syscall.Stat_t)
	if uid := os.Geteuid(); ok && int(stat.Uid) != uid {
		return fmt.Errorf("owned by user %d, this process is user %d: %w", stat.Uid, uid, syscall.EPERM)
	}
	return nil
}

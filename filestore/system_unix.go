//go:build unix

package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openFlags keep an open from following a symbolic link, and from waiting for the
// other end of a pipe.
const openFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK

// tryLock takes the lock of f with flock(2), if nobody has it.
func tryLock(f *os.File) (bool, error) {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		default:
			return false, &fs.PathError{Op: "flock", Path: f.Name(), Err: err}
		}
	}
}

// unlock gives the lock of f back. Closing would do so too, but not while a process
// that is just being started still shares the descriptor.
func unlock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }

// shared reports whether the users of the directory's group share it.
func shared(dir fs.FileInfo) bool { return dir.Mode().Perm()&0o020 != 0 }

// checkDir refuses a directory in which other users can do as they like.
func checkDir(path string, info fs.FileInfo) error {
	if info.Mode().Perm()&0o002 != 0 {
		return fmt.Errorf("%w: every user may write to directory %s (mode %v); use a directory for the store alone", ErrUnsafe, path, info.Mode())
	}
	if shared(info) && info.Mode()&fs.ModeSticky != 0 {
		return fmt.Errorf("%w: the users who share directory %s (mode %v) can't replace each other's files; remove the sticky bit", ErrUnsafe, path, info.Mode())
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if uid := os.Geteuid(); ok && !shared(info) && uid != 0 && stat.Uid != 0 && int(stat.Uid) != uid {
		return fmt.Errorf("%w: directory %s belongs to user %d; this is user %d; to share it, let their group write to it", ErrUnsafe, path, stat.Uid, uid)
	}
	return nil
}

// checkOwner refuses a file that was put there by somebody who does not use the
// directory.
func checkOwner(path string, info, dir fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	home, isHome := dir.Sys().(*syscall.Stat_t)
	uid := os.Geteuid()
	if !ok || !isHome || shared(dir) || stat.Uid == 0 || stat.Uid == home.Uid || int(stat.Uid) == uid {
		return nil
	}
	return fmt.Errorf("%w: %s belongs to user %d; this is user %d", ErrUnsafe, path, stat.Uid, uid)
}

// settle gives a new file to those who use the directory: what root makes belongs to the
// owner of the directory, and if the group may write to the directory, then to the file
// as well. The umask has no say.
func settle(f *os.File, dir fs.FileInfo) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	mine, home := info.Sys().(*syscall.Stat_t), dir.Sys().(*syscall.Stat_t)
	uid, gid, mode := int(mine.Uid), int(mine.Gid), privateFile
	if shared(dir) {
		gid, mode = int(home.Gid), mode|0o060
	}
	if os.Geteuid() == 0 {
		uid, gid = int(home.Uid), int(home.Gid)
	}
	if uid != int(mine.Uid) || gid != int(mine.Gid) {
		err = f.Chown(uid, gid)
	}
	if err == nil && info.Mode().Perm()&mode != mode {
		err = f.Chmod(mode)
	}
	return err
}

// settleDir makes a new directory that of the owner of its parent if root made it.
func settleDir(path, parent string) error {
	if err := os.Chmod(path, privateDir); err != nil || os.Geteuid() != 0 {
		return err
	}
	info, err := os.Stat(parent)
	if err != nil {
		return err
	}
	home := info.Sys().(*syscall.Stat_t)
	return os.Chown(path, int(home.Uid), int(home.Gid))
}

// makeGuard makes a guard file, unless somebody else is about to. It takes its name when
// it can be used by all. The lock of the directory keeps those apart who make one.
func (d *directory) makeGuard(name string) error {
	self, err := d.root.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = self.Close() }()
	if locked, err := tryLock(self); err != nil || !locked {
		return err
	}
	defer func() { _ = unlock(self) }()
	if _, err := d.root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := d.temporary(name)
	if err != nil {
		return err
	}
	d.at("place", nil, nil)
	return errors.Join(f.Close(), d.root.Rename(name+tempSuffix, name))
}

// syncDir makes renamings in the directory survive a loss of power.
func syncDir(root *os.Root) error {
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

//go:build unix

package owner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const (
	groupWrites  = 0o020
	othersWrite  = 0o002
	privateFile  = 0o600
	sharedFile   = 0o660
	privateDir   = 0o700
	unchangedUID = -1
)

func stat(info fs.FileInfo) *syscall.Stat_t { return info.Sys().(*syscall.Stat_t) }

// shared reports whether the users of its group share what is, or is in, info.
func shared(info fs.FileInfo) bool {
	return info.Mode().Perm()&(groupWrites|othersWrite) == groupWrites && info.Mode()&fs.ModeSticky == 0
}

// Check returns an error, which matches syscall.EPERM, if the file or directory at path,
// which is info, belongs to somebody who does not share the locks there with this user.
func Check(path string, info fs.FileInfo) error {
	uid := int(stat(info).Uid)
	if uid == os.Geteuid() || uid == 0 || shared(info) {
		return nil
	}
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	if shared(dir) || int(stat(dir).Uid) == uid {
		return nil
	}
	return foreign(uid, syscall.EPERM)
}

// foreign says how to share what belongs to another user.
func foreign(uid int, err error) error {
	return fmt.Errorf("owned by user %d, this process is user %d; "+
		"to share it, chgrp it or its directory to a group of both and chmod g+w,o-w: %w", uid, os.Geteuid(), err)
}

// Explain returns err, with whose the file at path is if that is why it can't be used.
func Explain(path string, err error) error {
	if !errors.Is(err, syscall.EACCES) && !errors.Is(err, syscall.EPERM) {
		return err
	}
	for p := path; ; p = filepath.Dir(p) {
		info, statErr := os.Lstat(p)
		switch {
		case statErr == nil && int(stat(info).Uid) != os.Geteuid() && p == path:
			return foreign(int(stat(info).Uid), err)
		case statErr == nil && int(stat(info).Uid) != os.Geteuid():
			return fmt.Errorf("%s: %w", p, foreign(int(stat(info).Uid), err))
		case statErr == nil, p == filepath.Dir(p):
			return err
		}
	}
}

// Terms are how a new file is made, for those who share the directory that it is in.
type Terms struct {
	Mode     uint32
	UID, GID int // -1 leaves it
}

// Settled reports whether a file that is simply made with Mode is as it should be.
func (t Terms) Settled() bool { return t == Terms{privateFile, unchangedUID, unchangedUID} }

// ForNew returns the terms of a new file in dir.
func ForNew(dir string) (Terms, error) {
	t := Terms{privateFile, unchangedUID, unchangedUID}
	info, err := os.Stat(dir)
	if err != nil {
		return t, err
	}
	home := stat(info)
	if shared(info) {
		t.Mode, t.GID = sharedFile, int(home.Gid)
	}
	if os.Geteuid() == 0 && home.Uid != 0 {
		t.UID, t.GID = int(home.Uid), int(home.Gid)
	}
	return t, nil
}

// MakeDir makes the directory at path (0700), and its parents, where they are missing.
// One that root makes belongs to the owner of its parent.
func MakeDir(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(path)
	if err := MakeDir(parent); err != nil {
		return err
	}
	err := os.Mkdir(path, privateDir)
	if errors.Is(err, fs.ErrExist) {
		return nil // somebody else did at the same time
	}
	if err != nil || os.Geteuid() != 0 {
		return err
	}
	info, err := os.Stat(parent)
	if err != nil {
		return err
	}
	return os.Chown(path, int(stat(info).Uid), int(stat(info).Gid))
}

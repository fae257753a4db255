//go:build unix

package owner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const (
	stranger = 64_003
	app      = 64_001
	crew     = 64_000
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// give gives path to a user and a group, where this process may.
func give(t *testing.T, path string, uid, gid int, mode os.FileMode) os.FileInfo {
	t.Helper()
	if os.Geteuid() == 0 {
		must(t, os.Chown(path, uid, gid))
	}
	must(t, os.Chmod(path, mode))
	info, err := os.Lstat(path)
	must(t, err)
	return info
}

// Whose a file is matters to root here, whom access rights do not stop.
func TestCheck_RefusesWhatIsNotShared(t *testing.T) {
	for _, tt := range []struct {
		dirUID        int
		dirMode, mode os.FileMode
		uid           int
		shared        bool
		because       string
	}{
		{uid: 0, dirUID: stranger, dirMode: 0o700, mode: 0o600, shared: true, because: "it is root's"},
		{uid: app, dirUID: app, dirMode: 0o755, mode: 0o600, shared: true, because: "it is the directory's owner's"},
		{uid: stranger, dirUID: 0, dirMode: 0o770, mode: 0o600, shared: true, because: "a group shares the directory"},
		{uid: stranger, dirUID: 0, dirMode: 0o755, mode: 0o660, shared: true, because: "a group shares it"},
		{uid: stranger, dirUID: 0, dirMode: 0o777 | os.ModeSticky, mode: 0o660, shared: true, because: "a group shares it"},
		{uid: stranger, dirUID: 0, dirMode: 0o755, mode: 0o600, because: "nobody shares it"},
		{uid: stranger, dirUID: app, dirMode: 0o755, mode: 0o644, because: "nobody shares it"},
		{uid: stranger, dirUID: 0, dirMode: 0o755, mode: 0o666, because: "everybody can hold it"},
		{uid: stranger, dirUID: 0, dirMode: 0o777, mode: 0o600, because: "everybody can lay it there"},
		{uid: stranger, dirUID: 0, dirMode: 0o770 | os.ModeSticky, mode: 0o600, because: "its group can't remove it"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "file")
		must(t, os.WriteFile(path, nil, 0o600))
		info := give(t, path, tt.uid, crew, tt.mode)
		give(t, dir, tt.dirUID, crew, tt.dirMode)
		err := Check(path, info)
		if os.Geteuid() != 0 {
			tt.shared = true // all of them are ours
		}
		if (err == nil) != tt.shared || !tt.shared && (!errors.Is(err, syscall.EPERM) || !strings.Contains(err.Error(), "chgrp")) {
			t.Errorf("Check = %v, although %s", err, tt.because)
		}
	}
}

func TestForNew_IsForThoseWhoShareTheDirectory(t *testing.T) {
	root := os.Geteuid() == 0
	for _, tt := range []struct {
		uid  int
		mode os.FileMode
		want Terms
	}{
		{0, 0o700, Terms{0o600, -1, -1}},
		{0, 0o777 | os.ModeSticky, Terms{0o600, -1, -1}},
		{0, 0o770, Terms{0o660, -1, crew}},
		{app, 0o700, Terms{0o600, app, crew}},
		{app, 0o770, Terms{0o660, app, crew}},
	} {
		dir := t.TempDir()
		info := give(t, dir, tt.uid, crew, tt.mode)
		if !root { // then the group is ours, and the owner is
			tt.want.UID = -1
			if tt.want.Mode == 0o660 {
				tt.want.GID = int(info.Sys().(*syscall.Stat_t).Gid)
			} else {
				tt.want.GID = -1
			}
		}
		got, err := ForNew(dir)
		if err != nil || got != tt.want || got.Settled() != (tt.want == Terms{0o600, -1, -1}) {
			t.Errorf("in %v of user %d: %+v, %v; want %+v", info.Mode(), tt.uid, got, err, tt.want)
		}
	}
	if _, err := ForNew(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("err = %v", err)
	}
}

func TestMakeDir_BelongsToTheOwnerOfItsParent(t *testing.T) {
	base := t.TempDir()
	give(t, base, app, crew, 0o755)
	path := filepath.Join(base, "a", "b")
	for range 2 { // what is there stays
		must(t, MakeDir(path))
	}
	for _, p := range []string{filepath.Dir(path), path} {
		info, err := os.Lstat(p)
		must(t, err)
		stat := info.Sys().(*syscall.Stat_t)
		if owner := int(stat.Uid); info.Mode().Perm() != 0o700 || os.Geteuid() == 0 && owner != app {
			t.Errorf("%s: mode %v, owner %d", p, info.Mode(), owner)
		}
	}
	file := filepath.Join(base, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if err := MakeDir(filepath.Join(file, "x")); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("err = %v", err)
	}
}

func TestExplain_SaysWhoseItIs(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	must(t, os.WriteFile(path, nil, 0o600))
	give(t, path, stranger, crew, 0o600)
	theirs := fmt.Sprintf("owned by user %d, this process is user %d", stranger, os.Geteuid())
	for _, tt := range []struct {
		path string
		err  error
		want string
	}{
		{path, syscall.EACCES, theirs},
		{path, syscall.ENOENT, ""},
		{filepath.Join(dir, "none"), syscall.EACCES, ""},
	} {
		got := Explain(tt.path, tt.err)
		if os.Geteuid() != 0 {
			tt.want = "" // all of them are ours
		}
		if !errors.Is(got, tt.err) || !strings.Contains(got.Error(), tt.want) || tt.want == "" && got != tt.err { //nolint:errorlint // as it is
			t.Errorf("Explain(%s, %v) = %v", tt.path, tt.err, got)
		}
	}
	give(t, dir, stranger, crew, 0o755)
	if got := Explain(filepath.Join(dir, "none"), syscall.EACCES); os.Geteuid() == 0 && !strings.Contains(got.Error(), dir+": "+theirs) {
		t.Errorf("of the directory: %v", got)
	}
}

//go:build unix

package layered

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const crew = 64_000 // a group that none of them has as its first

var (
	service   = user{UID: 64_001, GID: 64_001, Group: crew, Umask: 0o077}
	colleague = user{UID: 64_002, GID: 64_002, Group: crew, Umask: 0o022}
	stranger  = user{UID: 64_003, GID: 64_003, Group: 64_003, Umask: 0o022}
	byRoot    = user{Umask: 0o077}
)

// become makes this process one of the user.
func (u user) become() error {
	if os.Geteuid() != 0 || u == (user{}) {
		return nil
	}
	syscall.Umask(u.Umask)
	if u.UID == 0 {
		return nil
	}
	return errors.Join(syscall.Setgroups([]int{u.Group}), syscall.Setgid(u.GID), syscall.Setuid(u.UID))
}

// makePlace makes a directory as an administrator does.
func makePlace(t *testing.T, uid, gid int, mode os.FileMode) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lockfx-users-")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	if os.Geteuid() == 0 {
		must(t, os.Chown(dir, uid, gid))
	}
	must(t, os.Chmod(dir, mode))
	return dir
}

// as runs role as a user, and returns what it says.
func as(t *testing.T, u user, r role) string {
	t.Helper()
	r.User = u
	a := start(t, r)
	var said []string
	for line := range a.lines {
		said = append(said, line)
	}
	_ = a.cmd.Wait()
	return strings.Join(said, "\n")
}

func TestUsers_OfADirectorysGroupExcludeEachOther(t *testing.T) {
	for _, name := range []string{"default", "flock", "poll", "all"} {
		t.Run(name, func(t *testing.T) {
			dir := makePlace(t, 0, crew, 0o770)
			for _, log := range []string{logName, overlaps} {
				must(t, os.WriteFile(filepath.Join(dir, log), nil, 0o600))
				must(t, os.Chmod(filepath.Join(dir, log), 0o666))
			}
			const holds = 60
			users := []user{service, colleague, byRoot}
			var actors []*actor
			for _, u := range users {
				actors = append(actors, start(t, role{Do: "hammer", Dir: dir, Scope: processScopes[name], Holds: holds, User: u}))
			}
			for i, a := range actors {
				for line := range a.lines {
					t.Errorf("user %d says %q", users[i].UID, line)
				}
				must(t, a.cmd.Wait())
			}
			if visits, byMark, byLog := detected(t, dir); visits != len(users)*holds || byMark != 0 || byLog != 0 {
				t.Errorf("%d visits, %d and %d overlaps", visits, byMark, byLog)
			}
		})
	}
}

func TestUsers_OneRunByRootLocksNobodyOut(t *testing.T) {
	for name, scope := range map[string]Scope{"flock": processScopes["flock"], "poll": processScopes["poll"]} {
		home := makePlace(t, service.UID, service.GID, 0o755)
		r := role{Do: "hold", Dir: filepath.Join(home, "locks"), Scope: scope, Stale: 2 * time.Second}
		for _, u := range []user{byRoot, service, byRoot, service} {
			r.User = u
			a := start(t, r)
			a.expect("held")
			// And whoever of them comes meanwhile is kept out.
			for _, other := range []user{byRoot, service} {
				if said := as(t, other, role{Do: "try", Dir: r.Dir, Scope: scope, Stale: r.Stale}); said != "timeout <nil>" {
					t.Errorf("%s: user %d holds, and user %d: %s", name, u.UID, other.UID, said)
				}
			}
			a.tell()
			a.expect("releasing ")
			a.wait()
		}
	}
}

func TestUsers_WhoDoNotShareALockAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		return // there is one user
	}
	// Everybody may come in: the file itself says whose the lock is.
	dir := makePlace(t, service.UID, service.GID, 0o755)
	ours := start(t, role{Do: "hold", Dir: dir, User: service})
	ours.expect("held")
	for name, r := range map[string]role{
		"by default":  {Dir: dir},
		"flock alone": {Dir: dir, Scope: processScopes["flock"]},
		"the file":    {File: lockFile(t, dir)},
	} {
		r.Do = "try"
		if said := as(t, stranger, r); !strings.HasPrefix(said, "predicate-before ") || !strings.Contains(said, "flock layer: ") ||
			!strings.Contains(said, "owned by user 64001, this process is user 64003; to share it, chgrp it") {
			t.Errorf("%s: %s", name, said)
		}
	}
	ours.tell()
	ours.expect("releasing ")
	ours.wait()
}

// The file is root's, and its mode says who shares it.
func TestUsers_ShareAFileWithFlock1(t *testing.T) {
	if os.Geteuid() != 0 {
		return // there is one user
	}
	for _, tt := range []struct {
		mode os.FileMode
		who  user
		busy string
		free string
	}{
		{0o660, service, "timeout <nil>", "executed <nil>"},
		{0o660, colleague, "timeout <nil>", "executed <nil>"},
		{0o660, stranger, "to share it, chgrp it", "to share it, chgrp it"},
		{0o644, service, "to share it, chgrp it", "to share it, chgrp it"},
	} {
		file := filepath.Join(makePlace(t, 0, 0, 0o755|os.ModeSticky), "backup")
		must(t, os.WriteFile(file, nil, 0o600))
		must(t, os.Chown(file, 0, crew))
		must(t, os.Chmod(file, tt.mode))
		theirs := startCommand(t, exec.Command(tool(t, "flock"), file, "sh", "-c", "echo held; read line; echo released"))
		theirs.expect("held")
		r := role{Do: "try", File: file}
		if said := as(t, tt.who, r); !strings.Contains(said, tt.busy) {
			t.Errorf("mode %v, user %d, while flock(1) holds it: %s", tt.mode, tt.who.UID, said)
		}
		theirs.tell()
		theirs.expect("released")
		theirs.wait()
		if said := as(t, tt.who, r); !strings.Contains(said, tt.free) {
			t.Errorf("mode %v, user %d, when it is free: %s", tt.mode, tt.who.UID, said)
		}
	}
}

// In a directory where everybody may write, anybody can lay a file that all can lock.
func TestUsers_AFileLaidByAnybodyIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		return // there is one user
	}
	file := filepath.Join(makePlace(t, 0, 0, 0o777|os.ModeSticky), "backup")
	must(t, os.WriteFile(file, nil, 0o600))
	must(t, os.Chown(file, stranger.UID, stranger.GID))
	must(t, os.Chmod(file, 0o666))
	for _, u := range []user{service, byRoot} {
		if said := as(t, u, role{Do: "try", File: file}); !strings.Contains(said, "owned by user 64003") {
			t.Errorf("user %d: %s", u.UID, said)
		}
	}
}

func lockFile(t *testing.T, dir string) string {
	t.Helper()
	path, err := LockFile(role{Dir: dir}.options()...)
	must(t, err)
	return path
}

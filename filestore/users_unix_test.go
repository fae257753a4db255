//go:build unix

package filestore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
)

// user is who a process runs as. Only root can become somebody else; anybody else stays
// who they are, and shares with nobody.
type user struct{ uid, gid, group, umask int }

const (
	crew = 64_000 // a group that none of them has as its first
	root = 0
)

var (
	service   = user{uid: 64_001, gid: 64_001, group: crew, umask: 0o077}
	colleague = user{uid: 64_002, gid: 64_002, group: crew, umask: 0o022}
	stranger  = user{uid: 64_003, gid: 64_003, group: 64_003, umask: 0o022}
	byRoot    = user{uid: root, gid: root, group: root, umask: 0o022}
	byRoot77  = user{uid: root, gid: root, group: root, umask: 0o077}
)

func (u user) String() string { return fmt.Sprintf("%d %d %d %d", u.uid, u.gid, u.group, u.umask) }

// becomeUser makes this process one of the user that arg begins with, and returns the rest.
func becomeUser(arg string) (rest string, err error) {
	fields := strings.SplitN(arg, " ", 5)
	var u user
	for i, to := range []*int{&u.uid, &u.gid, &u.group, &u.umask} {
		if *to, err = strconv.Atoi(fields[i]); err != nil {
			return "", err
		}
	}
	syscall.Umask(u.umask)
	if os.Geteuid() == root && u.uid != root {
		err = errors.Join(syscall.Setgroups([]int{u.group}), syscall.Setgid(u.gid), syscall.Setuid(u.uid))
	}
	return strings.Join(fields[4:], ""), err
}

// as plays a part as a user.
func as(t *testing.T, u user, part, dir string) {
	t.Helper()
	if out, err := process(t, part, dir, u.String()).CombinedOutput(); err != nil {
		t.Fatalf("%s as user %d: %v\n%s", part, u.uid, err, out)
	}
}

// give makes a directory of a user and a group, as an administrator does.
func give(t *testing.T, dir string, uid, gid int, mode os.FileMode) {
	t.Helper()
	if os.Geteuid() == root {
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
}

func init() {
	// Enough keys for every file that there ever is in the directory.
	parts["use all keys"] = func(dir, arg string) error {
		if _, err := becomeUser(arg); err != nil {
			return err
		}
		s, err := filestore.New(dir)
		if err != nil {
			return err
		}
		for i := range 64 {
			if err := useKey(s, fmt.Sprint("job ", i)); err != nil {
				return err
			}
		}
		return useKey(s, "nightly")
	}
	parts["take over"] = func(dir, arg string) error {
		if _, err := becomeUser(arg); err != nil {
			return err
		}
		s, err := filestore.New(dir)
		if err != nil {
			return err
		}
		held, err := s.Inspect(ctx, "relay")
		if err != nil {
			return err
		}
		if held.Token != 0 {
			g, err := s.Acquire(ctx, "relay", time.Hour)
			if err != nil || g.OK || g.HeldBy != held.Label {
				return fmt.Errorf("acquire what another user holds: %+v, %w", g, err)
			}
			if err := mustBeTrue(s.Break(ctx, "relay")); err != nil {
				return err
			}
		}
		g, err := s.Acquire(lockfx.WithLabel(ctx, arg), "relay", time.Hour)
		if g.Token <= held.Token {
			err = errors.Join(err, fmt.Errorf("token %v after %v", g.Token, held.Token))
		}
		return mustBeTrue(g.OK && err == nil, err)
	}
	parts["take turns as a user"] = func(dir, arg string) error {
		rest, err := becomeUser(arg)
		if err != nil {
			return err
		}
		return parts["take turns"](dir, rest)
	}
	parts["be refused"] = func(dir, arg string) error {
		if _, err := becomeUser(arg); err != nil {
			return err
		}
		s, err := filestore.New(dir)
		if err == nil {
			_, err = s.Acquire(ctx, "nightly", time.Hour)
		}
		if !errors.Is(err, syscall.EACCES) {
			return fmt.Errorf("%w; want EACCES", err)
		}
		return nil
	}
}

// useKey does to a key what can be done, whoever used it last.
func useKey(s *filestore.Store, key string) error {
	if _, err := s.Break(ctx, key); err != nil {
		return err
	}
	token, err := acquired(s, key)
	if err != nil {
		return err
	}
	if l, err := s.Inspect(ctx, key); err != nil || l.Token != token {
		return fmt.Errorf("inspect: %+v, %w", l, err)
	}
	if err := mustBeTrue(s.Renew(ctx, key, token, time.Hour)); err != nil {
		return err
	}
	if err := mustBeTrue(s.Release(ctx, key, token)); err != nil {
		return err
	}
	if _, err := acquired(s, key); err != nil {
		return err
	}
	return mustBeTrue(s.Break(ctx, key))
}

// What root makes in a service's directory is the service's: locks, records, marks, and
// the directory itself. And root can do all to what the service made.
func TestOneRunByRootLocksTheServiceOutOfNothing(t *testing.T) {
	for _, admin := range []user{byRoot, byRoot77} {
		home := newDir(t)
		give(t, home, service.uid, service.gid, 0o700)
		for name, dir := range map[string]string{"a directory of the service": home, "a directory that is made": filepath.Join(home, "deep", "locks")} {
			t.Run(fmt.Sprintf("%s, umask %03o", name, admin.umask), func(t *testing.T) {
				for _, u := range []user{admin, service, admin, service} {
					as(t, u, "use all keys", dir)
				}
				for _, u := range []user{service, admin, service} {
					as(t, u, "take over", dir)
				}
			})
		}
	}
}

// The same if root's process dies at any moment.
func TestRootThatDiesLocksTheServiceOutOfNothing(t *testing.T) {
	moments := 0
	for n := 1; ; n++ {
		dir := newDir(t)
		give(t, dir, service.uid, service.gid, 0o700)
		s := open(t, dir)
		crashAt(s, n, 1<<10, panicking)
		if !died(func() { _, _ = s.Acquire(ctx, "nightly", time.Hour) }) {
			break
		}
		moments++
		as(t, service, "use all keys", dir)
	}
	if moments < 15 {
		t.Errorf("root died at %d moments only", moments)
	}
}

// The mode of the directory says who shares it.
func TestTwoUsersOfAGroupShareADirectoryThatTheGroupMayWriteTo(t *testing.T) {
	for name, owner := range map[string]struct {
		uid  int
		mode os.FileMode
	}{
		"of root, with the set-group-ID bit":    {root, 0o770 | os.ModeSetgid},
		"of root, without it":                   {root, 0o770},
		"of one of them":                        {service.uid, 0o770},
		"of one of them, readable by everybody": {service.uid, 0o775},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newDir(t)
			give(t, dir, owner.uid, crew, owner.mode)
			for _, u := range []user{service, colleague, byRoot77, service, colleague} {
				as(t, u, "use all keys", dir)
				as(t, u, "take over", dir)
			}
			if os.Geteuid() == root {
				as(t, stranger, "be refused", dir)
			}

			guarded := resource{newDir(t)}
			give(t, guarded.dir, root, crew, 0o770)
			for _, name := range []string{"journal", "resource"} {
				writeFile(t, guarded.dir, name, nil)
				give(t, filepath.Join(guarded.dir, name), root, crew, 0o660)
			}
			const holds = 20
			var all sync.WaitGroup
			for _, u := range []user{service, colleague, service, colleague} {
				all.Go(func() {
					out, err := process(t, "take turns as a user", dir, fmt.Sprint(u, " ", guarded.dir, " ", holds)).CombinedOutput()
					if err != nil {
						t.Errorf("user %d: %v\n%s", u.uid, err, out)
					}
				})
			}
			all.Wait()
			if n, err := guarded.check(nil); n != 4*holds || err != nil {
				t.Errorf("%d holds: %v", n, err)
			}
		})
	}
}

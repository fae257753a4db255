//go:build unix

package filestore_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/lockfx/lockfx"
)

// resource is what a lock guards, for processes: they must use it one at a time, and with
// rising tokens. Two detectors that know nothing of each other watch it: a lock of the
// system's, which ends with its process, and a journal, which does not.
type resource struct{ dir string }

// use enters, does work, and leaves. An error says that somebody else is inside.
func (r resource) use(token lockfx.Token, work func()) (err error) {
	f, err := os.OpenFile(filepath.Join(r.dir, "resource"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	// The journal comes first, so that an overlap is in it even if the lock shows it too.
	if err := r.note("enter", token); err != nil {
		return err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("overlap: token %v is inside together with another: %w", token, err)
	}
	work()
	return r.note("leave", token)
}

// note appends a line in one write, which no other one can split.
func (r resource) note(what string, token lockfx.Token) error {
	f, err := os.OpenFile(r.journal(), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %d %d\n", what, token, os.Getpid())
	return errors.Join(err, f.Close())
}

func (r resource) journal() string { return filepath.Join(r.dir, "journal") }

// check reads the journal, and returns how many holds there were and what is wrong with
// them. A process that was killed need not leave.
func (r resource) check(killed map[int]bool) (holds int, err error) {
	f, err := os.Open(r.journal())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	type visit struct {
		token int64
		pid   int
	}
	var inside, last visit
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var what string
		var v visit
		if _, err := fmt.Sscanf(lines.Text(), "%s %d %d", &what, &v.token, &v.pid); err != nil {
			return holds, fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		switch {
		case what == "leave" && v == inside:
			inside = visit{}
		case what == "leave":
			return holds, fmt.Errorf("%+v leaves while %+v is inside", v, inside)
		case inside != (visit{}) && !killed[inside.pid]:
			return holds, fmt.Errorf("%+v enters while %+v is inside", v, inside)
		case v.token <= last.token:
			return holds, fmt.Errorf("%+v enters after %+v", v, last)
		default:
			holds++
			inside, last = v, v
		}
	}
	if inside != (visit{}) && !killed[inside.pid] {
		return holds, fmt.Errorf("%+v never left", inside)
	}
	return holds, nil
}

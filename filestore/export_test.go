package filestore

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// The names of what is in the directory, for tests that damage it.
var LeaseName, MarkName, GuardNameOf = leaseName, markName, func(key string) string {
	stripe, _ := stripeOf(leaseName(key))
	return guardName(stripe)
}

// SweepEvery, SweepAge and SweepAtMost are for tests of the sweep.
const (
	SweepEvery  = sweepEvery
	SweepAge    = sweepAge
	SweepAtMost = sweepAtMost
)

// OnStep calls f before each step of writing a file.
func (s *Store) OnStep(f func(step string, file *os.File, data []byte)) { s.dir.step = f }

// WithoutNews makes the system refuse to tell news, with err.
func (s *Store) WithoutNews(err error) {
	s.watches.open = func() (news, error) {
		return subscribe(s.dir, func() (*fsnotify.Watcher, error) { return nil, err })
	}
}

// Lease and Mark are what is in files, for tests that read and forge them.
type (
	Lease = record
	Mark  = mark
)

// SealLease, ReadLease, SealMark and ReadMark convert between files and their content.
func SealLease(r Lease) ([]byte, error)    { return seal(leaseFormat, r) }
func ReadLease(data []byte) (Lease, error) { return unseal[record](leaseFormat, data) }
func SealMark(m Mark) ([]byte, error)      { return seal(markFormat, m) }
func ReadMark(data []byte) (Mark, error)   { return unseal[mark](markFormat, data) }

// TryGuard takes the guard of key if nobody has it.
func (s *Store) TryGuard(key string) (release func(), ok bool) {
	stripe, _ := stripeOf(leaseName(key))
	return s.dir.tryGuard(stripe)
}

// OnGuardOpened calls f between the opening of a guard file and its locking.
func (s *Store) OnGuardOpened(f func(name string)) {
	s.dir.step = func(step string, file *os.File, _ []byte) {
		if step == "lock" {
			f(filepath.Base(file.Name()))
		}
	}
}

// Dir is where the files of s are.
func (s *Store) Dir() string { return s.dir.path }

// TakeMarkGuard waits for the guard of the mark.
func (s *Store) TakeMarkGuard(ctx context.Context) (release func()) {
	release, err := s.dir.guard(ctx, markGuard, math.MaxInt64)
	if err != nil {
		panic(err)
	}
	return release
}

// NextNews returns the next news of w about the directory at path.
func NextNews(w *fsnotify.Watcher, path string) (name string, ok bool) {
	return systemNews{&directory{path: path}, w, time.NewTicker(time.Hour)}.next()
}

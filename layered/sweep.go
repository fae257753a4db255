package layered

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"sync/atomic"
)

// A file for every key that was ever used would be left behind, since a lock file says
// nothing by being there. So whoever opens files looks now and then how many there are,
// and removes some that nobody holds when there are too many.
const (
	tooMany     = 1024
	sweepEvery  = 64 // files opened, the first one included: many a process opens no more
	sweepAtMost = 4 * sweepEvery
)

var opened atomic.Uint64 // files, by this process

// ownName is what fileName makes, and what is made before it has that name.
var ownName = regexp.MustCompile(`-[0-9a-f]{64}(\.new-[0-9a-f]+)?$`)

// sweep removes lock files that nobody holds if there are too many. A file whose path was
// given is not ours to remove: flock(1) does not look whether the path still leads to it.
func (p place) sweep() {
	if p.dir == "" || opened.Add(1)%sweepEvery != 1 {
		return
	}
	dir, err := os.Open(p.dir)
	if err != nil {
		return
	}
	names, _ := dir.Readdirnames(-1)
	_ = dir.Close()
	if len(names) <= tooMany {
		return
	}
	// From anywhere, since those at the beginning may all be held.
	first := rand.IntN(len(names))
	for i := range min(sweepAtMost, len(names)) {
		if name := names[(first+i)%len(names)]; ownName.MatchString(name) {
			_ = files.Remove(filepath.Join(p.dir, name)) // or the next one does
		}
	}
}

package filestore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
)

func TestSweepKeepsWhatIsNeeded(t *testing.T) {
	s, c, dir := newStore(t)
	day := grant(t, s, "held for a day", 24*time.Hour)
	grant(t, s, "expired", time.Minute)
	release(t, s, "released", grant(t, s, "released", time.Minute), true)
	grant(t, s, "corrupt", time.Minute)
	writeFile(t, dir, filestore.LeaseName("corrupt"), []byte("?"))
	writeFile(t, dir, filestore.LeaseName("crashed")+".tmp", []byte("{"))
	writeFile(t, dir, "README", []byte("no file of the store"))
	c.Advance(filestore.SweepAge / 2)
	release(t, s, "recent", grant(t, s, "recent", time.Minute), true)
	c.Advance(filestore.SweepAge/2 + 2*time.Minute)
	grant(t, s, "now", time.Minute)

	for file, want := range map[string]bool{
		filestore.LeaseName("held for a day"):   true,
		filestore.LeaseName("recent"):           true,
		filestore.LeaseName("corrupt"):          true,
		filestore.LeaseName("expired"):          false,
		filestore.LeaseName("released"):         false,
		filestore.LeaseName("crashed") + ".tmp": false,
		filestore.MarkName:                      true,
		filestore.GuardNameOf("released"):       true,
		"README":                                true,
	} {
		if _, err := os.Stat(filepath.Join(dir, file)); (err == nil) != want {
			t.Errorf("%s: %v; want it there: %v", file, err, want)
		}
	}
	inspect(t, s, "held for a day", lockfx.Lease{Token: day, TimeLeft: 24*time.Hour - filestore.SweepAge - 2*time.Minute})
}

// A swept key has no record any more, and the mark knows better than a clock that was set
// back.
func TestTokensRiseAcrossASweep(t *testing.T) {
	s, c, dir := newStore(t)
	first := grant(t, s, "nightly", time.Minute)
	release(t, s, "nightly", first, true)
	c.Advance(filestore.SweepAge + time.Hour)
	grant(t, s, "weekly", time.Minute)
	if _, err := os.Stat(filepath.Join(dir, filestore.LeaseName("nightly"))); err == nil {
		t.Fatal("not swept")
	}
	c.Advance(-24 * time.Hour)
	rising(t, first, grant(t, open(t, dir, filestore.WithNow(c.Now)), "nightly", time.Minute))
}

// A record whose token the mark does not know of is the only copy of it.
func TestSweepKeepsATokenThatTheMarkLacks(t *testing.T) {
	s, c, dir := newStore(t)
	grant(t, s, "first", time.Minute)
	early := readFile(t, dir, filestore.MarkName)
	release(t, s, "nightly", grant(t, s, "nightly", time.Minute), true)
	writeFile(t, dir, filestore.MarkName, early) // as from a backup
	record := filepath.Join(dir, filestore.LeaseName("nightly"))

	c.Advance(filestore.SweepAge + filestore.SweepEvery)
	release(t, s, "weekly", grant(t, s, "weekly", time.Minute), true)
	if _, err := os.Stat(record); err != nil {
		t.Error("swept before the mark had its token")
	}
	c.Advance(filestore.SweepEvery)
	grant(t, s, "weekly", time.Minute)
	if _, err := os.Stat(record); err == nil {
		t.Error("not swept when the mark had passed it")
	}
}

// One call looks at so many files only, and many calls look at all of them.
func TestSweepIsBounded(t *testing.T) {
	s, c, dir := newStore(t)
	const files = 3 * filestore.SweepAtMost
	grant(t, s, "nightly", time.Minute) // makes the mark, whose token covers those below
	for i := range files {
		r := filestore.Lease{Key: fmt.Sprint(i), Token: 1, Ends: c.Now()}
		data, err := filestore.SealLease(r)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, dir, filestore.LeaseName(r.Key), data)
	}
	c.Advance(filestore.SweepAge + filestore.SweepEvery)
	for call := 1; ; call++ {
		before := len(filesIn(t, dir, "lease-*"))
		grant(t, s, "nightly", time.Minute)
		forceFree(t, s, "nightly", true)
		left := len(filesIn(t, dir, "lease-*"))
		if before-left > filestore.SweepAtMost {
			t.Fatalf("call %d removed %d files", call, before-left)
		}
		if left == 1 {
			t.Logf("%d files took %d sweeps", files, call)
			return
		}
		if call > 100 {
			t.Fatalf("%d files are left after %d sweeps", left, call)
		}
		c.Advance(filestore.SweepEvery)
	}
}

// The time of the next sweep comes from a clock that was wrong by a year.
func TestSweepIsNotPutOffByAWrongClock(t *testing.T) {
	s, c, dir := newStore(t)
	c.Advance(365 * 24 * time.Hour)
	grant(t, s, "nightly", time.Minute)
	c.Advance(-365 * 24 * time.Hour)
	release(t, s, "weekly", grant(t, s, "weekly", time.Minute), true)
	c.Advance(filestore.SweepAge + filestore.SweepEvery)
	grant(t, s, "monthly", time.Minute)
	if _, err := os.Stat(filepath.Join(dir, filestore.LeaseName("weekly"))); err == nil {
		t.Error("not swept")
	}
}

// A key whose guard is in use is left alone, and nobody waits.
func TestSweepSkipsWhatIsInUse(t *testing.T) {
	s, c, dir := newStore(t)
	release(t, s, "nightly", grant(t, s, "nightly", time.Minute), true)
	other := open(t, dir)
	unlock, ok := other.TryGuard("nightly")
	if !ok {
		t.Fatal("the guard is taken")
	}
	defer unlock()
	c.Advance(filestore.SweepAge + filestore.SweepEvery)
	key := "weekly"
	for filestore.GuardNameOf(key) == filestore.GuardNameOf("nightly") {
		key += "!"
	}
	grant(t, s, key, time.Minute)
	if _, err := os.Stat(filepath.Join(dir, filestore.LeaseName("nightly"))); err != nil {
		t.Error("swept under a guard of somebody else")
	}
}

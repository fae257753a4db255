package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
	"github.com/lockfx/lockfx/internal/storemodel"
)

func TestCase_A01_DeadContextNeverGetsALease(t *testing.T) {
	s, _, dir := newStore(t)
	dead, cancel := context.WithCancel(context.Background())
	cancel()
	for op, call := range calls(s, 1) {
		if err := call(dead, "nightly"); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", op, err)
		}
	}
	if files := filesIn(t, dir, "*"); len(files) > 0 {
		t.Errorf("a call with a dead context wrote %v", files)
	}
}

// The context ends at each step of writing, until the answer. Whatever was written by
// then, nobody has the lease.
func TestCase_A02_ContextThatEndsOnTheWayLeavesNoLease(t *testing.T) {
	s, _, _ := newStore(t)
	steps := 0
	for endAt := 1; ; endAt++ {
		ctx, cancel := context.WithCancel(context.Background())
		at := 0
		s.OnStep(func(string, *os.File, []byte) {
			if at++; at == endAt {
				cancel()
			}
		})
		g, err := s.Acquire(ctx, "nightly", time.Hour)
		cancel()
		s.OnStep(nil)
		if at < endAt { // it came to its end before
			if err != nil || !g.OK {
				t.Fatalf("%+v, %v; want a grant", g, err)
			}
			break
		}
		steps++
		if g != (lockfx.Grant{}) || !errors.Is(err, context.Canceled) {
			t.Errorf("ended at step %d: %+v, %v", endAt, g, err)
		}
		inspect(t, s, "nightly", lockfx.Lease{})
		release(t, s, "nightly", grant(t, s, "nightly", time.Hour), true)
	}
	if steps < 10 {
		t.Errorf("the context ended at %d steps only", steps)
	}
}

func TestCase_A05_ContentionAndFailureAreNeverMixedUp(t *testing.T) {
	s, _, dir := newStore(t)
	grant(t, s, "nightly", time.Minute)
	refuse(t, s, "nightly", time.Minute)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if g, err := s.Acquire(context.Background(), "nightly", time.Minute); err == nil || g != (lockfx.Grant{}) {
		t.Errorf("a failure shows a grant or a holder: %+v, %v", g, err)
	}
	for op, call := range calls(s, 1) {
		err := call(ctx, "nightly")
		if !errors.Is(err, lockfx.ErrStore) || !errors.Is(err, fs.ErrNotExist) || strings.Count(err.Error(), lockfx.ErrStore.Error()) != 1 {
			t.Errorf("%s: %v; want a failure of the store, said once, with its errno", op, err)
		}
	}
}

func TestCase_A06_ExpiredLeaseIsTakenInOneCall(t *testing.T) {
	s, c, _ := newStore(t)
	grant(t, s, "nightly", time.Minute)
	c.Advance(time.Minute - 1)
	refuse(t, s, "nightly", 1)
	c.Advance(1)
	grant(t, s, "nightly", time.Minute)
}

func TestCase_A07_TheLabelIsNoIdentity(t *testing.T) {
	s, _, _ := newStore(t)
	ctx := lockfx.WithLabel(context.Background(), "host")
	first, err := s.Acquire(ctx, "nightly", time.Minute)
	if err != nil || !first.OK {
		t.Fatal(first, err)
	}
	if g, err := s.Acquire(ctx, "nightly", time.Minute); err != nil || g.OK || g.HeldBy != "host" {
		t.Errorf("%+v, %v", g, err)
	}
	release(t, s, "nightly", first.Token-1, false)
}

// A clock that is read before the guard is taken shows an instant from before a wait for
// the guard. So it must find the guard taken whenever a decision is made.
func TestCase_A08_ClockIsReadAtTheDecision(t *testing.T) {
	dir := newDir(t)
	other := open(t, dir)
	var reads, free int
	s := open(t, dir, filestore.WithNow(func() time.Time {
		reads++
		if release, ok := other.TryGuard("nightly"); ok {
			release()
			free++
		}
		return storemodel.Epoch
	}))
	ctx := context.Background()
	for op, call := range map[string]func() (any, error){
		"acquire": func() (any, error) { return s.Acquire(ctx, "nightly", time.Minute) },
		"renew":   func() (any, error) { return s.Renew(ctx, "nightly", 1, time.Minute) },
		"release": func() (any, error) { return s.Release(ctx, "nightly", 1) },
		"break":   func() (any, error) { return s.Break(ctx, "nightly") },
	} {
		reads, free = 0, 0
		if _, err := call(); err != nil {
			t.Fatal(op, err)
		}
		if reads == 0 || free != 0 {
			t.Errorf("%s: %d of %d readings came without the guard", op, free, reads)
		}
	}
	_, _ = s.Inspect(ctx, "nightly") // takes no guard: the planted early reading
	if free != 1 {
		t.Error("the test does not notice an early reading")
	}
}

func TestCase_A09_ShortTTLIsRefusedNeverRounded(t *testing.T) {
	s, c, _ := newStore(t)
	token := grant(t, s, "held", time.Minute)
	for _, ttl := range []time.Duration{0, -1, -time.Hour, 1, time.Millisecond - 1} {
		if g, err := s.Acquire(context.Background(), "nightly", ttl); g.OK || !errors.Is(err, lockfx.ErrConfig) {
			t.Errorf("acquire for %v: %+v, %v", ttl, g, err)
		}
		if ok, err := s.Renew(context.Background(), "held", token, ttl); ok || !errors.Is(err, lockfx.ErrConfig) {
			t.Errorf("renew to %v: %v, %v", ttl, ok, err)
		}
	}
	inspect(t, s, "held", lockfx.Lease{Token: token, TimeLeft: time.Minute})
	grant(t, s, "nightly", time.Millisecond)
	refuse(t, s, "nightly", time.Millisecond)
	c.Advance(time.Millisecond)
	grant(t, s, "nightly", time.Millisecond+1)
	refuse(t, s, "nightly", time.Millisecond+1)
}

func TestCase_A10_TwoAcquisitionsInOneProcessExcludeEachOther(t *testing.T) {
	s, c, dir := newStore(t)
	other := open(t, dir, filestore.WithNow(c.Now))
	token := grant(t, s, "nightly", time.Minute)
	refuse(t, s, "nightly", time.Minute)
	refuse(t, other, "nightly", time.Minute)
	release(t, other, "nightly", token, true) // whoever knows the token is the owner
	grant(t, other, "nightly", time.Minute)
	refuse(t, s, "nightly", time.Minute)
}

func TestCase_R06_RenewNeverCreates(t *testing.T) {
	s, c, _ := newStore(t)
	renew(t, s, "never held", 1, time.Minute, false)
	renew(t, s, "never held", 0, time.Minute, false)
	released := grant(t, s, "released", time.Minute)
	release(t, s, "released", released, true)
	renew(t, s, "released", released, time.Minute, false)
	broken := grant(t, s, "broken", time.Minute)
	forceFree(t, s, "broken", true)
	renew(t, s, "broken", broken, time.Minute, false)
	expired := grant(t, s, "expired", time.Minute)
	c.Advance(time.Minute)
	renew(t, s, "expired", expired, time.Minute, false)
	for _, key := range []string{"never held", "released", "broken", "expired"} {
		inspect(t, s, key, lockfx.Lease{})
	}
}

func TestCase_R07_ForeignTokenChangesNothing(t *testing.T) {
	s, c, dir := newStore(t)
	stale := grant(t, s, "nightly", time.Minute)
	c.Advance(time.Minute)
	token := grant(t, s, "nightly", time.Minute)
	other := grant(t, s, "weekly", time.Minute)
	before := string(readFile(t, dir, filestore.LeaseName("nightly")))
	for _, foreign := range []lockfx.Token{stale, other, token + 1, token - 1, 0, -token} {
		renew(t, s, "nightly", foreign, time.Hour, false)
		release(t, s, "nightly", foreign, false)
	}
	inspect(t, s, "nightly", lockfx.Lease{Token: token, TimeLeft: time.Minute})
	if after := string(readFile(t, dir, filestore.LeaseName("nightly"))); after != before {
		t.Errorf("the record was changed:\n%s\n%s", before, after)
	}
}

func TestCase_L03_LateReleaseSparesTheNextHolder(t *testing.T) {
	s, c, _ := newStore(t)
	late := grant(t, s, "nightly", time.Minute)
	c.Advance(time.Minute)
	next := grant(t, s, "nightly", time.Minute)
	release(t, s, "nightly", late, false)
	inspect(t, s, "nightly", lockfx.Lease{Token: next, TimeLeft: time.Minute})
}

// The clock stands still, so that only what is on disk can make tokens rise.
func TestCase_T01_TokensOutliveTheirRecords(t *testing.T) {
	s, c, dir := newStore(t)
	var tokens []lockfx.Token
	for range 20 {
		token := grant(t, s, "nightly", time.Minute)
		release(t, s, "nightly", token, true)
		tokens = append(tokens, token)
		removeFile(t, dir, filestore.LeaseName("nightly"))
		s = open(t, dir, filestore.WithNow(c.Now)) // another process, which remembers nothing
	}
	rising(t, tokens...)
}

func TestCase_T02_TokensRiseAfterAllDataIsLost(t *testing.T) {
	s, c, dir := newStore(t)
	first := grant(t, s, "nightly", time.Minute)
	for _, file := range filesIn(t, dir, "*") {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	// The very store that issued a token still knows it, whatever the clock says.
	c.Advance(-time.Hour)
	second := grant(t, s, "nightly", time.Minute)
	for _, file := range filesIn(t, dir, "*") {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	c.Advance(time.Hour + time.Millisecond)
	rising(t, first, second, grant(t, open(t, dir, filestore.WithNow(c.Now)), "nightly", time.Minute))
}

// Each key is used once, two a minute. What they leave behind is bounded by the keys of
// the last two hours and some, not by all there ever were.
func TestCase_T03_UnusedKeysAreForgotten(t *testing.T) {
	s, c, dir := newStore(t)
	const bound = 2.5 * 60 * 2
	most := 0
	for i := range 1500 {
		key := fmt.Sprint("job ", i)
		token := grant(t, s, key, time.Minute)
		if i%2 == 0 { // every other holder dies
			release(t, s, key, token, true)
		}
		c.Advance(30 * time.Second)
		if i%20 == 0 {
			most = max(most, len(filesIn(t, dir, "*")))
		}
	}
	if most > bound {
		t.Errorf("%d files after 1,500 keys, want at most %v", most, bound)
	}
}

func TestCase_T05_RenewedLeaseStillExpires(t *testing.T) {
	s, c, _ := newStore(t)
	token := grant(t, s, "nightly", time.Minute)
	for range 20 {
		c.Advance(30 * time.Second)
		renew(t, s, "nightly", token, time.Minute, true)
	}
	c.Advance(time.Minute - 1)
	refuse(t, s, "nightly", 1)
	c.Advance(1)
	grant(t, s, "nightly", time.Minute)
}

func TestCase_T07_LongKeyIsRefusedWithTheRule(t *testing.T) {
	s, _, dir := newStore(t)
	grant(t, s, strings.Repeat("k", lockfx.MaxKeyLen), time.Minute)
	files := len(filesIn(t, dir, "*"))
	for op, call := range calls(s, 1) {
		err := call(context.Background(), strings.Repeat("k", lockfx.MaxKeyLen+1))
		if !errors.Is(err, lockfx.ErrConfig) || !strings.Contains(err.Error(), "at most 512") {
			t.Errorf("%s: %v", op, err)
		}
	}
	if len(filesIn(t, dir, "*")) != files {
		t.Error("a refused key left a file")
	}
}

func TestCase_T08_KeysAreExact(t *testing.T) {
	s, _, _ := newStore(t)
	keys := []string{
		"host-1", "host-10", "host-1 ", " host-1", "Host-1", "HOST-1", "host_1", "host%1", "host*",
		"é", "e\u0301", "\u00df", "ss", "İ", "i",
		"costarring", "liquid", // one 32-bit FNV-1a hash
		"a/b", "a//b", "a/./b", "a\nb", "{a}b", "a", "..", "/", "../a", "mark", "guard-0",
	}
	tokens := map[string]lockfx.Token{}
	for _, key := range keys {
		tokens[key] = grant(t, s, key, time.Minute)
	}
	for _, key := range keys {
		release(t, s, key, tokens[key], true)
		delete(tokens, key)
		for other, token := range tokens {
			inspect(t, s, other, lockfx.Lease{Token: token, TimeLeft: time.Minute})
		}
	}
}

func TestCase_H01_RemovedGuardFileIsNoticed(t *testing.T) {
	s, c, dir := newStore(t)
	guard := filestore.GuardNameOf("nightly")
	token := grant(t, s, "nightly", time.Minute)
	removeFile(t, dir, guard)
	other := open(t, dir, filestore.WithNow(c.Now))
	refuse(t, other, "nightly", time.Minute)
	release(t, s, "nightly", token, true)

	// The file goes away between its opening and its locking.
	gone := 0
	s.OnGuardOpened(func(name string) {
		if name != guard || gone == 4 {
			return
		}
		gone++
		removeFile(t, dir, guard)
		if gone%2 == 0 {
			writeFile(t, dir, guard, nil) // and somebody makes another one
		}
	})
	grant(t, s, "nightly", time.Minute)
	if gone != 4 {
		t.Errorf("the lock of a file that is not there was good enough after %d removals", gone)
	}
}

// Presence of a file is no ownership, and a process id is never looked at.
func TestCase_H02_FilesOfACrashAreNoLock(t *testing.T) {
	s, c, dir := newStore(t)
	writeFile(t, dir, filestore.GuardNameOf("nightly"), []byte("4711"))
	writeFile(t, dir, "guard-mark", nil)
	writeFile(t, dir, filestore.LeaseName("nightly")+".tmp", []byte("half a rec"))
	writeFile(t, dir, filestore.MarkName+".tmp", nil)
	grant(t, s, "nightly", time.Minute)
	c.Advance(time.Minute)
	grant(t, open(t, dir, filestore.WithNow(c.Now)), "nightly", time.Minute)
	if left := filesIn(t, dir, "*.tmp"); len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
}

func TestCase_H07_FileNamesAreReadableAndNeverCollide(t *testing.T) {
	long := strings.Repeat("x", 100)
	names := map[string]string{}
	for _, key := range []string{long + "a", long + "b", "Ünïcödé", "con", "NUL.txt", "..", "/", "a b", "a_b", "-rf", "é"} {
		name := filestore.LeaseName(key)
		if names[strings.ToLower(name)] != "" {
			t.Errorf("%q and %q share %s", key, names[strings.ToLower(name)], name)
		}
		names[strings.ToLower(name)] = key
		if len(name) > 120 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") != "" {
			t.Errorf("%q makes the name %q", key, name)
		}
	}
	if name := filestore.LeaseName("nightly"); !strings.HasPrefix(name, "lease-nightly-") {
		t.Errorf("the name is %q", name)
	}
}

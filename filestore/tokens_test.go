package filestore_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
)

func TestTokensRiseAcrossReleaseExpiryBreakAndKeys(t *testing.T) {
	s, c, _ := newStore(t) // the clock stands still unless it is moved
	var tokens []lockfx.Token
	take := func(key string) { tokens = append(tokens, grant(t, s, key, time.Millisecond)) }
	take("nightly")
	release(t, s, "nightly", tokens[0], true)
	take("nightly")
	c.Advance(time.Millisecond)
	take("nightly")
	forceFree(t, s, "nightly", true)
	take("weekly")
	take("nightly")
	c.Advance(-time.Hour)
	take("monthly")
	c.Advance(2 * time.Hour)
	take("nightly")
	rising(t, tokens...)
	if last := tokens[len(tokens)-1]; int64(last) != c.Now().UnixMicro() {
		t.Errorf("token %v; want the clock's %v", last, c.Now().UnixMicro())
	}
}

// Each of the two places that know the last token is enough, though the clock was set
// back and the process is another one.
func TestTokensRiseWithoutTheMark(t *testing.T) {
	s, c, dir := newStore(t)
	tokens := []lockfx.Token{grant(t, s, "nightly", time.Minute), grant(t, s, "weekly", time.Minute)}
	release(t, s, "nightly", tokens[0], true)
	c.Advance(-time.Hour)
	removeFile(t, dir, filestore.MarkName)
	rising(t, append(tokens, grant(t, open(t, dir, filestore.WithNow(c.Now)), "nightly", time.Minute))...)
}

func TestTokensRiseWithAMarkThatIsBehind(t *testing.T) {
	s, c, dir := newStore(t)
	grant(t, s, "weekly", time.Minute)
	early := readFile(t, dir, filestore.MarkName)
	var tokens []lockfx.Token
	for range 3 {
		tokens = append(tokens, grant(t, s, "nightly", time.Millisecond))
		c.Advance(time.Millisecond)
	}
	c.Advance(-time.Hour)
	forceFree(t, s, "nightly", true)
	writeFile(t, dir, filestore.MarkName, early) // as from a backup
	rising(t, append(tokens, grant(t, open(t, dir, filestore.WithNow(c.Now)), "nightly", time.Minute))...)
}

func TestMarkIsNeverLowered(t *testing.T) {
	s, c, dir := newStore(t)
	var marks []lockfx.Token
	for i := range 10 {
		c.Advance(-time.Duration(i) * time.Hour)
		release(t, s, "nightly", grant(t, s, "nightly", time.Minute), true)
		m, err := filestore.ReadMark(readFile(t, dir, filestore.MarkName))
		if err != nil {
			t.Fatal(err)
		}
		marks = append(marks, m.Token)
	}
	rising(t, marks...)
}

// A crash between the mark and the record wastes a token and issues none twice.
func TestMarkAheadOfTheRecord(t *testing.T) {
	s, c, dir := newStore(t)
	first := grant(t, s, "nightly", time.Millisecond)
	ahead, err := filestore.SealMark(filestore.Mark{Token: first + 100, SweepAt: c.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, filestore.MarkName, ahead)
	c.Advance(-time.Hour)
	forceFree(t, s, "nightly", true)
	if token := grant(t, s, "nightly", time.Minute); token != first+101 {
		t.Errorf("token %v after a mark of %v", token, first+100)
	}
}

func TestTokensStartAtOneBeforeTheEpoch(t *testing.T) {
	s := open(t, newDir(t), filestore.WithNow(func() time.Time { return time.Unix(-1, 0) }))
	if token := grant(t, s, "nightly", time.Minute); token != 1 {
		t.Errorf("token %v, want 1", token)
	}
}

func TestNoGrantAfterTheLastToken(t *testing.T) {
	s, c, dir := newStore(t)
	last, err := filestore.SealMark(filestore.Mark{Token: math.MaxInt64, SweepAt: c.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, filestore.MarkName, last)
	g, err := s.Acquire(context.Background(), "weekly", time.Minute)
	if g != (lockfx.Grant{}) || !errors.Is(err, lockfx.ErrStore) {
		t.Errorf("%+v, %v; want an error", g, err)
	}
	inspect(t, s, "weekly", lockfx.Lease{})
}

func TestLongestLease(t *testing.T) {
	s, _, _ := newStore(t)
	token := grant(t, s, "nightly", math.MaxInt64)
	inspect(t, s, "nightly", lockfx.Lease{Token: token, TimeLeft: math.MaxInt64})
}

// Stepping the clock makes leases last longer or shorter, by as much, and nothing else.
func TestClockSteps(t *testing.T) {
	s, c, _ := newStore(t)
	token := grant(t, s, "nightly", time.Minute)
	c.Advance(-time.Hour)
	refuse(t, s, "nightly", time.Hour+time.Minute)
	renew(t, s, "nightly", token, time.Minute, true) // counts from now again
	refuse(t, s, "nightly", time.Minute)
	c.Advance(2 * time.Hour)
	renew(t, s, "nightly", token, time.Minute, false)
	rising(t, token, grant(t, s, "nightly", time.Minute))
}

package filestore_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
	"github.com/lockfx/lockfx/internal/storemodel"
)

// crash is what a store panics with where a test lets its process die: nothing of the
// call is done after it, and the system takes the guards back.
type crash struct{}

// crashAt lets s die at the nth moment of its next calls. A moment is before each step,
// and after so many bytes that are written.
func crashAt(s *filestore.Store, n, bytes int, die func()) {
	moments := 0
	now := func() {
		if moments++; moments == n {
			die()
		}
	}
	s.OnStep(func(_ string, file *os.File, data []byte) {
		now()
		for i := range data {
			if _, err := file.WriteAt(data[i:i+1], int64(i)); err != nil {
				panic(err)
			}
			if i%bytes == 0 {
				now()
			}
		}
	})
}

// crashInPlaceAt is a planted fault: it lets s die after n bytes of a record that it
// writes over the old one.
func crashInPlaceAt(s *filestore.Store, n int) {
	s.OnStep(func(step string, file *os.File, data []byte) {
		if step != "write" || strings.Contains(file.Name(), filestore.MarkName) || n > len(data) {
			return
		}
		if err := os.WriteFile(strings.TrimSuffix(file.Name(), ".tmp"), data[:n-1], 0o600); err != nil {
			panic(err)
		}
		panic(crash{})
	})
}

func panicking() { panic(crash{}) }

// died calls f and reports whether the store died in it.
func died(f func()) (yes bool) {
	defer func() {
		if p := recover(); p != nil {
			if p != (crash{}) {
				panic(p)
			}
			yes = true
		}
	}()
	f()
	return false
}

// crashes are calls that write, each with what is on disk before.
var crashes = map[string]struct {
	before, call func(s *filestore.Store, c *storemodel.Clock, token *lockfx.Token) error
}{
	"acquire a new key": {
		before: func(*filestore.Store, *storemodel.Clock, *lockfx.Token) error { return nil },
		call:   acquireForAnHour,
	},
	"acquire a free key": {
		before: func(s *filestore.Store, c *storemodel.Clock, token *lockfx.Token) error {
			return errors.Join(acquireForAnHour(s, c, token), releaseIt(s, c, token))
		},
		call: acquireForAnHour,
	},
	"acquire an expired key": {
		before: func(s *filestore.Store, c *storemodel.Clock, token *lockfx.Token) error {
			err := acquireForAnHour(s, c, token)
			c.Advance(time.Hour)
			return err
		},
		call: acquireForAnHour,
	},
	"renew": {
		before: acquireForAnHour,
		call: func(s *filestore.Store, _ *storemodel.Clock, token *lockfx.Token) error {
			return mustBeTrue(s.Renew(ctx, "nightly", *token, 2*time.Hour))
		},
	},
	"release": {before: acquireForAnHour, call: releaseIt},
	"break": {
		before: acquireForAnHour,
		call: func(s *filestore.Store, _ *storemodel.Clock, _ *lockfx.Token) error {
			return mustBeTrue(s.Break(ctx, "nightly"))
		},
	},
}

func acquireForAnHour(s *filestore.Store, _ *storemodel.Clock, token *lockfx.Token) error {
	g, err := s.Acquire(ctx, "nightly", time.Hour)
	*token = g.Token
	return mustBeTrue(g.OK, err)
}

func releaseIt(s *filestore.Store, _ *storemodel.Clock, token *lockfx.Token) error {
	return mustBeTrue(s.Release(ctx, "nightly", *token))
}

func mustBeTrue(ok bool, err error) error {
	if !ok {
		return errors.Join(errors.New("not true"), err)
	}
	return err
}

// A process dies at every moment of every call that writes. The next one finds what was
// there before the call or what the call was to make, and never the same token again.
func TestCrashAtEveryMoment(t *testing.T) {
	if moments, err := crashEverywhere(t, 16); err != nil || moments < 200 {
		t.Errorf("%d moments: %v", moments, err)
	}
}

// crashEverywhere crashes at every moment of every call, and returns how many there were.
func crashEverywhere(t *testing.T, bytes int) (moments int, err error) {
	for name, tt := range crashes {
		for n := 1; ; n++ {
			happened, err := survive(t, tt.before, tt.call, func(s *filestore.Store) { crashAt(s, n, bytes, panicking) })
			if err != nil {
				return moments, fmt.Errorf("%s, crash at moment %d: %w", name, n, err)
			}
			if !happened {
				break
			}
			moments++
		}
	}
	return moments, nil
}

func survive(t *testing.T, before, call func(*filestore.Store, *storemodel.Clock, *lockfx.Token) error, plan func(*filestore.Store)) (happened bool, err error) {
	s, c, dir := newStore(t)
	var token lockfx.Token
	if err := before(s, c, &token); err != nil {
		return false, err
	}
	was, err := s.Inspect(ctx, "nightly")
	if err != nil {
		return false, err
	}
	issued := token
	plan(s)
	if !died(func() { err = call(s, c, &token) }) {
		return false, err
	}

	s = open(t, dir, filestore.WithNow(c.Now))
	is, err := s.Inspect(ctx, "nightly")
	if err != nil {
		return true, err
	}
	// A crash may come after the renaming too, so a new state is as good as the old one.
	if is != was && is != (lockfx.Lease{}) && is.TimeLeft != time.Hour && is.TimeLeft != 2*time.Hour {
		return true, fmt.Errorf("found %+v; it was %+v before", is, was)
	}
	issued = max(issued, is.Token)
	c.Advance(2 * time.Hour)
	g, err := s.Acquire(ctx, "nightly", time.Hour)
	if err != nil || !g.OK || g.Token <= issued {
		return true, fmt.Errorf("next acquisition: %+v, %w; the last token was %v", g, err, issued)
	}
	if left := filesIn(t, dir, "*.tmp"); len(left) > 0 {
		return true, fmt.Errorf("left behind: %v", left)
	}
	return true, nil
}

// The clock stands still: a token that was in use before the crash can't come again by
// its help.
func TestTokensRiseAcrossCrashesWithoutTheClock(t *testing.T) {
	s, c, dir := newStore(t)
	last := grant(t, s, "nightly", time.Hour)
	release(t, s, "nightly", last, true)
	for n := 1; ; n += 11 {
		crashAt(s, n, 1, panicking)
		if !died(func() { _, _ = s.Acquire(ctx, "nightly", time.Hour) }) {
			break
		}
		s = open(t, dir, filestore.WithNow(c.Now))
		if l, err := s.Inspect(ctx, "nightly"); err != nil {
			t.Fatal(err)
		} else if l.Token != 0 {
			rising(t, last, l.Token)
			last = l.Token
			forceFree(t, s, "nightly", true)
		}
		next := grant(t, s, "nightly", time.Hour)
		rising(t, last, next)
		last = next
		release(t, s, "nightly", last, true)
	}
}

func TestCrashTestNoticesWritingInPlace(t *testing.T) {
	for name, tt := range crashes {
		crashed := 0
		for n := 1; ; n += 10 {
			happened, err := survive(t, tt.before, tt.call, func(s *filestore.Store) { crashInPlaceAt(s, n) })
			if !happened {
				break
			}
			crashed++
			if !errors.Is(err, filestore.ErrCorrupt) {
				t.Errorf("%s: %d bytes of a record go unnoticed: %v", name, n-1, err)
			}
		}
		if crashed < 25 {
			t.Errorf("%s: crashed %d times only", name, crashed)
		}
	}
}

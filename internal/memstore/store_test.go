package memstore_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/memstore"
	"github.com/lockfx/lockfx/internal/storemodel"
)

func TestRefusalTellsHolderAndTimeLeft(t *testing.T) {
	s, c := newStore()
	ctx := lockfx.WithLabel(context.Background(), "host/42/reports")
	if g, err := s.Acquire(ctx, "nightly", time.Minute); err != nil || !g.OK {
		t.Fatal(g, err)
	}
	c.Advance(time.Minute - 1)

	g, err := s.Acquire(lockfx.WithLabel(ctx, "another"), "nightly", time.Hour)
	if want := (lockfx.Grant{HeldBy: "host/42/reports", RetryAfter: 1}); err != nil || g != want {
		t.Fatalf("got %+v, %v; want %+v", g, err, want)
	}
}

func TestRenewSetsTheTimeLeft(t *testing.T) {
	s, c := newStore()
	token := grant(t, s, "nightly", time.Minute)
	c.Advance(30 * time.Second)
	renew(t, s, "nightly", token, time.Hour, true)
	refuse(t, s, "nightly", time.Hour)
	renew(t, s, "nightly", token, time.Second, true)
	refuse(t, s, "nightly", time.Second)
}

func TestReleaseFreesOnce(t *testing.T) {
	s, _ := newStore()
	token := grant(t, s, "nightly", time.Minute)
	release(t, s, "nightly", token+1, false)
	refuse(t, s, "nightly", time.Minute)
	release(t, s, "nightly", token, true)
	release(t, s, "nightly", token, false)
	grant(t, s, "nightly", time.Minute)
}

func TestReleaseOfAnExpiredLeaseIsFalse(t *testing.T) {
	s, c := newStore()
	token := grant(t, s, "nightly", time.Minute)
	c.Advance(time.Minute)
	release(t, s, "nightly", token, false)
	grant(t, s, "nightly", time.Minute)
}

func TestExpiryIsFinalOnceSeen(t *testing.T) {
	s, c := newStore()
	token := grant(t, s, "nightly", time.Minute)
	c.Advance(time.Minute)
	renew(t, s, "nightly", token, time.Minute, false)
	c.Advance(-time.Second)
	renew(t, s, "nightly", token, time.Minute, false)
	inspect(t, s, "nightly", lockfx.Lease{})
}

func TestSystemClockIsTheDefault(t *testing.T) {
	for name, s := range map[string]func() *memstore.Store{
		"New()":             func() *memstore.Store { return memstore.New() },
		"New(WithNow(nil))": func() *memstore.Store { return memstore.New(memstore.WithNow(nil)) },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := s()
			if token := grant(t, s, "nightly", time.Minute); int64(token) != time.Now().UnixMicro() {
				t.Errorf("%s: token %v, want the clock's %v", name, token, time.Now().UnixMicro())
			}
			time.Sleep(time.Minute - time.Nanosecond)
			refuse(t, s, "nightly", 1)
			time.Sleep(time.Nanosecond)
			grant(t, s, "nightly", time.Minute)
		})
	}
}

func TestOptionsPrintThemselves(t *testing.T) {
	if got := memstore.WithNow(nil).String(); got != "memstore.WithNow(nil)" {
		t.Error(got)
	}
	if got := memstore.WithNow(time.Now).String(); got != "memstore.WithNow(func)" {
		t.Error(got)
	}
}

// calls are all methods of the store that take a key, each ready to succeed on
// the key "nightly" when it is held under token.
func calls(s *memstore.Store, token lockfx.Token) map[string]func(ctx context.Context, key string) error {
	return map[string]func(context.Context, string) error{
		"acquire": func(ctx context.Context, key string) error {
			_, err := s.Acquire(ctx, key, time.Minute)
			return err
		},
		"renew": func(ctx context.Context, key string) error {
			_, err := s.Renew(ctx, key, token, time.Hour)
			return err
		},
		"release": func(ctx context.Context, key string) error {
			_, err := s.Release(ctx, key, token)
			return err
		},
		"break": func(ctx context.Context, key string) error {
			_, err := s.Break(ctx, key)
			return err
		},
		"inspect": func(ctx context.Context, key string) error {
			_, err := s.Inspect(ctx, key)
			return err
		},
		"watch": func(ctx context.Context, key string) error {
			_, stop, err := s.Watch(ctx, key)
			if err == nil {
				stop()
			}
			return err
		},
	}
}

func TestDeadContextChangesNothing(t *testing.T) {
	s, _ := newStore()
	token := grant(t, s, "nightly", time.Minute)
	reason := errors.New("the boss went home")
	dead, cancel := context.WithCancelCause(context.Background())
	cancel(reason)
	late, cancelLate := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancelLate()

	for op, call := range calls(s, token) {
		for key, free := range map[string]bool{"nightly": false, "free": true} {
			err := call(dead, key)
			if !errors.Is(err, context.Canceled) || !errors.Is(err, reason) {
				t.Errorf("%s: %v; want the end of ctx and its cause", op, err)
			}
			if !strings.HasPrefix(err.Error(), op+` "`+key+`": `) {
				t.Errorf("%s: message %q", op, err)
			}
			if err := call(late, key); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v; want %v", op, err, context.DeadlineExceeded)
			}
			if free {
				inspect(t, s, key, lockfx.Lease{})
			} else {
				inspect(t, s, key, lockfx.Lease{Token: token, TimeLeft: time.Minute})
			}
		}
	}
}

func TestBadArgumentsAreRefusedAllAtOnce(t *testing.T) {
	s, _ := newStore()
	ctx := context.Background()
	for _, key := range []string{"", "a\x00b", "\xff", strings.Repeat("x", lockfx.MaxKeyLen+1)} {
		for op, call := range calls(s, 1) {
			err := call(ctx, key)
			if !errors.Is(err, lockfx.ErrConfig) || !strings.HasPrefix(err.Error(), op+": ") {
				t.Errorf("%s with a bad key: %v", op, err)
			}
		}
	}
	_, err := s.Acquire(ctx, "", -1)
	for _, rule := range []string{`key ""`, "ttl -1ns"} {
		if !errors.Is(err, lockfx.ErrConfig) || !strings.Contains(err.Error(), rule) {
			t.Errorf("%v; want it to name %s", err, rule)
		}
	}
	for op, call := range calls(s, 1) {
		if err := call(ctx, strings.Repeat("é", lockfx.MaxKeyLen/2)); err != nil {
			t.Errorf("%s with the longest key: %v", op, err)
		}
	}
}

func TestLongestTTLDoesNotOverflow(t *testing.T) {
	for name, s := range map[string]*memstore.Store{
		"system clock": memstore.New(),
		"wall clock":   memstore.New(memstore.WithNow(func() time.Time { return storemodel.Epoch })),
	} {
		grant(t, s, "nightly", math.MaxInt64)
		if g, err := s.Acquire(context.Background(), "nightly", 1); err != nil || g.OK || g.RetryAfter <= 0 {
			t.Errorf("%s: %+v, %v; want a refusal", name, g, err)
		}
	}
}

func BenchmarkAcquireRelease(b *testing.B) {
	s, ctx := memstore.New(), context.Background()
	b.ReportAllocs()
	for b.Loop() {
		g, err := s.Acquire(ctx, "nightly", time.Second)
		if err != nil || !g.OK {
			b.Fatal(g, err)
		}
		if ok, err := s.Release(ctx, "nightly", g.Token); err != nil || !ok {
			b.Fatal(ok, err)
		}
	}
}

func TestAcquireReleaseAllocatesAtMostTwice(t *testing.T) {
	s := memstore.New()
	if allocs := testing.AllocsPerRun(10_000, func() {
		release(t, s, "nightly", grant(t, s, "nightly", time.Minute), true)
	}); allocs > 2 {
		t.Errorf("%v allocations", allocs)
	}
}

package redisstore

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
)

func TestGoodRepliesAreRead(t *testing.T) {
	for _, tt := range []struct {
		reply any
		want  lockfx.Grant
	}{
		{[]any{int64(1), "1796040934762506"}, lockfx.Grant{OK: true, Token: 1796040934762506}},
		{[]any{int64(1), "9007199254740991"}, lockfx.Grant{OK: true, Token: 1<<53 - 1}},
		{[]any{int64(0), "host/1", "1500"}, lockfx.Grant{HeldBy: "host/1", RetryAfter: 1500 * time.Microsecond}},
		{[]any{int64(0), "", "1"}, lockfx.Grant{RetryAfter: time.Microsecond}},
		{[]any{int64(0), "", "9223372036854775807"}, lockfx.Grant{RetryAfter: math.MaxInt64 / 1000 * 1000}},
	} {
		if got, err := grantOf(tt.reply); err != nil || got != tt.want {
			t.Errorf("%v: %+v, %v; want %+v", tt.reply, got, err, tt.want)
		}
	}
	if got, err := leaseOf([]any{"7", "host/1", "2000000"}); err != nil || got != (lockfx.Lease{Token: 7, Label: "host/1", TimeLeft: 2 * time.Second}) {
		t.Errorf("lease: %+v, %v", got, err)
	}
	if got, err := leaseOf([]any{}); err != nil || got != (lockfx.Lease{}) {
		t.Errorf("lease of a free key: %+v, %v", got, err)
	}
	if got, err := renewedOf([]any{int64(1), int64(0)}, 2); err != nil || !got[0] || got[1] {
		t.Errorf("renewed: %v, %v", got, err)
	}
}

// Whatever is not exactly an answer is an error: no grant, no refusal, no lease.
func TestBadRepliesAreNoAnswers(t *testing.T) {
	bad := []any{
		nil, "OK", int64(1), 1.0, true,
		[]any{nil},
		[]any{int64(1)},
		[]any{int64(1), int64(7)},
		[]any{int64(1), "0"},
		[]any{int64(1), "-1"},
		[]any{int64(1), "1.8e+15"},
		[]any{int64(1), ""},
		[]any{int64(1), "7", "x"},
		[]any{"1", "7"},
		[]any{int64(2), "7"},
		[]any{int64(0), nil, "5"},
		[]any{int64(0), "a", "0"},
		[]any{int64(0), "a"},
		[]any{true, "7"},
	}
	for _, reply := range bad {
		if g, err := grantOf(reply); g != (lockfx.Grant{}) || !errors.Is(err, lockfx.ErrBadGrant) {
			t.Errorf("grant of %#v: %+v, %v", reply, g, err)
		}
		if l, err := leaseOf(reply); l != (lockfx.Lease{}) || !errors.Is(err, lockfx.ErrBadGrant) {
			t.Errorf("lease of %#v: %+v, %v", reply, l, err)
		}
		if r, err := renewedOf(reply, 3); r != nil || !errors.Is(err, lockfx.ErrBadGrant) {
			t.Errorf("renewed of %#v: %v, %v", reply, r, err)
		}
		if done, err := doneOf(reply); reply != int64(1) && (done || !errors.Is(err, lockfx.ErrBadGrant)) {
			t.Errorf("done of %#v: %v, %v", reply, done, err)
		}
	}
}

package redisstore

import (
	"fmt"
	"strconv"
	"time"

	"github.com/lockfx/lockfx"
)

// grantOf reads what acquire.lua returns. Anything else is no grant, and no refusal.
func grantOf(reply any) (lockfx.Grant, error) {
	fields, ok := reply.([]any)
	if !ok || len(fields) == 0 {
		return lockfx.Grant{}, malformed(reply)
	}
	switch {
	case fields[0] == int64(1) && len(fields) == 2:
		if token, ok := positive(fields[1]); ok {
			return lockfx.Grant{OK: true, Token: lockfx.Token(token)}, nil
		}
	case fields[0] == int64(0) && len(fields) == 3:
		label, isText := fields[1].(string)
		if left, ok := positive(fields[2]); ok && isText {
			return lockfx.Grant{HeldBy: label, RetryAfter: micros(left)}, nil
		}
	}
	return lockfx.Grant{}, malformed(reply)
}

// leaseOf reads what inspect.lua returns.
func leaseOf(reply any) (lockfx.Lease, error) {
	fields, ok := reply.([]any)
	switch {
	case ok && len(fields) == 0:
		return lockfx.Lease{}, nil
	case ok && len(fields) == 3:
		token, isToken := positive(fields[0])
		label, isText := fields[1].(string)
		if left, ok := positive(fields[2]); ok && isToken && isText {
			return lockfx.Lease{Token: lockfx.Token(token), Label: label, TimeLeft: micros(left)}, nil
		}
	}
	return lockfx.Lease{}, malformed(reply)
}

// renewedOf reads what renew.lua returns for n leases.
func renewedOf(reply any, n int) ([]bool, error) {
	fields, ok := reply.([]any)
	if !ok || len(fields) != n {
		return nil, malformed(reply)
	}
	renewed := make([]bool, n)
	for i, field := range fields {
		var err error
		if renewed[i], err = doneOf(field); err != nil {
			return nil, malformed(reply)
		}
	}
	return renewed, nil
}

// doneOf reads what a script returns that did something or did not. Only 1 is true.
func doneOf(reply any) (bool, error) {
	switch reply {
	case int64(1):
		return true, nil
	case int64(0):
		return false, nil
	}
	return false, malformed(reply)
}

// positive reads an integer that came as text, so that no digit of it was lost.
func positive(field any) (int64, bool) {
	text, ok := field.(string)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n > 0
}

func malformed(reply any) error {
	return fmt.Errorf("%w: unexpected reply %#v", lockfx.ErrBadGrant, reply)
}

// micros turns microseconds into a duration, the longest one if it is beyond that.
func micros(n int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Microsecond)
	return time.Duration(min(n, most)) * time.Microsecond
}

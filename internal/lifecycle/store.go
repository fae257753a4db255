package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/lockfx/lockfx"
)

var (
	errReleasing    = errors.New("the lease is being released")
	errNoAnswer     = errors.New("no answer before the end of the lease")
	errNoTimer      = errors.New("timer unarmable: the clock armed no timer")
	errExited       = errors.New("the call ended its goroutine")
	errStillRenewal = errors.New("a renewal is still under way; the lease is left to expire")
)

// storeError says that op met err at the store. A store that says so itself is not
// repeated.
func (m *Machine) storeError(op string, err error) error {
	said := fmt.Sprintf("%s %q: ", op, m.cfg.Key)
	if errors.Is(err, lockfx.ErrStore) && strings.HasPrefix(err.Error(), said) {
		return err
	}
	return fmt.Errorf("%s%w: %w", said, lockfx.ErrStore, err)
}

// panicked is the error that a panic, recovered as r, becomes.
func panicked(r any) error { return &lockfx.PanicError{Value: r, Stack: debug.Stack()} }

// The three calls of a store, with its panics as errors.

func (m *Machine) storeAcquire(ctx context.Context, ttl time.Duration) (g lockfx.Grant, err error) {
	defer func() {
		if r := recover(); r != nil {
			g, err = lockfx.Grant{}, panicked(r)
		}
	}()
	ctx, cancel := m.callBound(ctx)
	defer cancel()
	g, err = m.cfg.Store.Acquire(ctx, m.cfg.Key, ttl)
	return g, saidBy(ctx, err)
}

func (m *Machine) storeRenew(ctx context.Context, token lockfx.Token, ttl time.Duration) (ok bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			ok, err = false, panicked(r)
		}
	}()
	ctx, cancel := m.callBound(ctx)
	defer cancel()
	ok, err = m.cfg.Store.Renew(ctx, m.cfg.Key, token, ttl)
	return ok, saidBy(ctx, err)
}

func (m *Machine) storeRelease(ctx context.Context, token lockfx.Token) (ok bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			ok, err = false, panicked(r)
		}
	}()
	ctx, cancel := m.callBound(ctx)
	defer cancel()
	ok, err = m.cfg.Store.Release(ctx, m.cfg.Key, token)
	return ok && err == nil, saidBy(ctx, err)
}

// storeKeep sets the lease to rest instead of releasing it, or to the shortest
// longer lease that the store takes, and returns what it is set to.
func (m *Machine) storeKeep(ctx context.Context, token lockfx.Token, rest time.Duration) (time.Duration, bool, error) {
	ok, err := m.storeRenew(ctx, token, rest)
	for errors.Is(err, lockfx.ErrConfig) && rest < m.cfg.TTL { // below the store's resolution
		rest = min(2*rest, m.cfg.TTL)
		ok, err = m.storeRenew(ctx, token, rest)
	}
	return rest, ok && err == nil, err
}

// callBound bounds a call of the store by the call timeout, if there is one.
func (m *Machine) callBound(ctx context.Context) (context.Context, context.CancelFunc) {
	if m.cfg.CallTimeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, m.cfg.CallTimeout, m.callTooSlow)
}

// saidBy returns err, or, if it was provoked by the end of ctx, why ctx ended: that
// says more.
func saidBy(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return causeOf(ctx)
	}
	return err
}

// causeOf says why ctx ended: an error that matches its cause and ctx.Err().
func causeOf(ctx context.Context) error {
	cause, err := context.Cause(ctx), ctx.Err()
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// detached returns a context for giving a lease back: endless carries the values
// of a caller but not its end, and the release timeout bounds it.
func (m *Machine) detached(endless context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(endless, m.cfg.ReleaseTimeout, m.tooSlow)
}

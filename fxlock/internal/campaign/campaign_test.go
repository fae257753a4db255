package campaign_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/campaign"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	errOwn     = errors.New("own-fault")
	errCleanup = errors.New("cleanup-fault")
)

// hold is the lease of token 7. A test loses it by hand.
type hold struct {
	lockfx.Holder
	lost   atomic.Bool
	onLost func(*lockfx.LostError)
}

func (h *hold) Held() bool                        { return !h.lost.Load() }
func (h *hold) Token() lockfx.Token               { return 7 }
func (h *hold) Failure() error                    { return nil }
func (h *hold) OnLost(f func(*lockfx.LostError))  { h.onLost = f }
func loss(reason lockfx.Reason) *lockfx.LostError { return &lockfx.LostError{Token: 7, Reason: reason} }

// lead runs a campaign of one attempt and returns what it told of.
func lead(t *testing.T, attempt func(ctx context.Context, c *campaign.Term, h *hold) error) (told []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := new(hold)
		var attempts atomic.Int64
		c := campaign.Start(t.Context(), campaign.Config{
			TTL: time.Minute, Pause: time.Hour,
			Lead: func(ctx context.Context, term *campaign.Term) error {
				if attempts.Add(1) > 1 {
					<-ctx.Done()
					return context.Cause(ctx)
				}
				return attempt(ctx, term, h)
			},
			Notify: func(e campaign.Event) {
				told = append(told, fmt.Sprintf("%d %v %v", e.Change, e.Err, e.Cleanup))
			},
			Failed: func(campaign.Failure) {},
		}, nil)
		synctest.Wait()
		if h.onLost != nil {
			h.onLost(loss(lockfx.ReasonExpired)) // too late to be news
		}
		c.Stop(lockfx.ErrDisposed)
		<-c.Done()
	})
	return told[1:slices.IndexFunc(told, func(line string) bool { return line == line1(campaign.StoodDown, nil, nil) })]
}

func line1(c campaign.Change, err, cleanup error) string {
	return fmt.Sprintf("%d %v %v", c, err, cleanup)
}

// What fn returned, and what its run came to, are told apart.
func TestTermEnded(t *testing.T) {
	canceledToo := errors.Join(context.Canceled, lockfx.ErrStore)
	for name, tt := range map[string]struct {
		reason       lockfx.Reason // for which the lease is lost while the function runs, or none
		fn           error         // what it returns
		run          error         // what its run comes to
		err, cleanup error         // what is told
		lost         bool          // a loss is told
	}{
		"nil":                       {},
		"an error":                  {fn: errOwn, err: errOwn},
		"a failed release":          {run: errCleanup, cleanup: errCleanup},
		"both":                      {fn: errOwn, run: errCleanup, err: errOwn, cleanup: errCleanup},
		"a loss":                    {reason: lockfx.ReasonExpired, run: loss(lockfx.ReasonExpired), err: loss(lockfx.ReasonExpired), lost: true},
		"a loss, told by fn":        {reason: lockfx.ReasonExpired, fn: context.Canceled, run: loss(lockfx.ReasonExpired), err: loss(lockfx.ReasonExpired), lost: true},
		"MaxHold":                   {reason: lockfx.ReasonMaxHold, fn: context.Canceled, run: loss(lockfx.ReasonMaxHold), lost: true},
		"MaxHold, and an error":     {reason: lockfx.ReasonMaxHold, fn: errOwn, run: loss(lockfx.ReasonMaxHold), err: errOwn, lost: true},
		"MaxHold, with an outage":   {reason: lockfx.ReasonMaxHold, fn: canceledToo, run: loss(lockfx.ReasonMaxHold), err: canceledToo, lost: true},
		"a loss after fn":           {run: loss(lockfx.ReasonExpired), cleanup: loss(lockfx.ReasonExpired), lost: true},
		"the loss of another lease": {run: &lockfx.LostError{Token: 8}, cleanup: &lockfx.LostError{Token: 8}},
		"canceled by itself":        {fn: context.Canceled, err: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			told := lead(t, func(_ context.Context, term *campaign.Term, h *hold) error {
				term.Granted(h)
				term.Run(func() error {
					h.lost.Store(tt.reason != lockfx.ReasonNone)
					return tt.fn
				})
				return tt.run
			})
			want := []string{line1(campaign.Elected, nil, nil)}
			if tt.lost {
				want = append(want, line1(campaign.Lost, tt.run, nil))
			}
			if want = append(want, line1(campaign.TermEnded, tt.err, tt.cleanup)); !slices.Equal(told, want) {
				t.Errorf("told %q, want %q", told, want)
			}
		})
	}
}

// A function that ends its goroutine says nothing of its run.
func TestTermEnded_AfterAGoexit(t *testing.T) {
	told := lead(t, func(_ context.Context, term *campaign.Term, h *hold) error {
		term.Granted(h)
		term.Run(func() error { runtime.Goexit(); return nil })
		return nil
	})
	if want := line1(campaign.TermEnded, errors.New("fn panicked or ended its goroutine"), nil); len(told) != 2 || told[1] != want {
		t.Errorf("told %q, want %q", told, want)
	}
}

// A lease that is lost before its function began is no term.
func TestLost_BeforeTheFunctionBegan(t *testing.T) {
	told := lead(t, func(_ context.Context, term *campaign.Term, h *hold) error {
		term.Granted(h)
		h.onLost(loss(lockfx.ReasonExpired))
		return loss(lockfx.ReasonExpired)
	})
	if len(told) != 0 {
		t.Errorf("told %q", told)
	}
}

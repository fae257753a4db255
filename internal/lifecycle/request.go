package lifecycle

import (
	"context"
	"time"

	"github.com/lockfx/lockfx"
)

// request is the context of one acquisition or renewal as the store sees it: it tells its
// deadline, which is the local deadline of the lease. Clients that heed nothing but
// deadlines then end in time, and a store can give an attempt a part of the time that is
// left. It ends with the context that it embeds: the expiry timer of the hold sees to that.
type request struct {
	context.Context
	hold *Hold
}

// Deadline returns the earlier one of the local deadline and of the caller's.
func (r *request) Deadline() (time.Time, bool) {
	end := r.hold.Deadline()
	if clock := r.hold.m.cfg.Clock; clock != lockfx.SystemClock() {
		end = time.Now().Add(end.Sub(clock.Now())) // clients go by the system's clock
	}
	if callers, ok := r.Context.Deadline(); ok && callers.Before(end) {
		return callers, true
	}
	return end, true
}

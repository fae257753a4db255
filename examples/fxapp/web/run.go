package web

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/examples/fxapp/nightly"
)

// written is the answer when the report was written. A token is a string: as a
// number of JSON it would lose digits in many clients.
type written struct {
	Token     string `json:"token"`
	Report    string `json:"report"`
	Requests  int64  `json:"requests"`
	Malformed int64  `json:"malformed_lines"`
}

// busy is the answer when another run is under way, here or elsewhere.
type busy struct {
	Error    string `json:"error"`
	HeldBy   string `json:"held_by,omitempty"`
	TimeLeft string `json:"time_left,omitempty"`
}

// newRunHandler runs the report and waits for it. A client that hangs up ends it.
func newRunHandler(report nightly.Report, store lockfx.Store, config Config) endpoint {
	return endpoint{"POST /run", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		summary, err := report(r.Context())
		var held *lockfx.NotAcquiredError
		switch {
		case err == nil:
			answer(w, http.StatusOK, written{
				Token:     summary.Token.String(),
				Report:    config.ReportFile,
				Requests:  summary.Requests(),
				Malformed: summary.Stats.Malformed,
			})
		case errors.As(err, &held):
			answerBusy(r.Context(), w, store, held)
		case errors.Is(err, lockfx.ErrDisposed):
			answer(w, http.StatusServiceUnavailable, fault{err.Error()})
		default:
			answer(w, http.StatusInternalServerError, fault{err.Error()})
		}
	})}
}

func answerBusy(ctx context.Context, w http.ResponseWriter, store lockfx.Store, held *lockfx.NotAcquiredError) {
	body := busy{Error: held.Error(), HeldBy: held.HeldBy}
	left := held.RetryAfter
	if held.Self { // the lock did not ask the store, which knows more
		if lease, err := inspect(ctx, store, held.Key); err == nil {
			body.HeldBy, left = lease.Label, lease.TimeLeft
		}
	}
	if left > 0 {
		body.TimeLeft = left.Round(time.Millisecond).String()
		w.Header().Set("Retry-After", strconv.FormatInt(int64((left+time.Second-1)/time.Second), 10))
	}
	answer(w, http.StatusConflict, body)
}

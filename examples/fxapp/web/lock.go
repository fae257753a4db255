package web

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// lockState is the lock as this replica sees it, and as the store does.
type lockState struct {
	Lock  string     `json:"lock"`
	Key   string     `json:"key"`
	State string     `json:"state"`
	Held  bool       `json:"held"`
	Token string     `json:"token"` // a string: many clients lose digits of large numbers
	Store storeState `json:"store"`
}

// storeState is the lease that the store knows of, whoever holds it.
type storeState struct {
	Held     bool   `json:"held"`
	HeldBy   string `json:"held_by,omitempty"`
	Token    string `json:"token,omitempty"`
	TimeLeft string `json:"time_left,omitempty"`
	Error    string `json:"error,omitempty"`
}

func newLockHandler(lock *fxlock.Lock, store lockfx.Store, config Config) endpoint {
	return endpoint{"GET /lock", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusOK, lockState{
			Lock:  config.Lock,
			Key:   lock.Key(),
			State: lock.State().String(),
			Held:  lock.Held(),
			Token: lock.Token().String(),
			Store: askStore(r.Context(), store, lock.Key()),
		})
	})}
}

func askStore(ctx context.Context, store lockfx.Store, key string) storeState {
	lease, err := inspect(ctx, store, key)
	switch {
	case err != nil:
		return storeState{Error: err.Error()}
	case !lease.Token.Valid():
		return storeState{}
	}
	return storeState{Held: true, HeldBy: lease.Label, Token: lease.Token.String(), TimeLeft: lease.TimeLeft.Round(time.Millisecond).String()}
}

var errNoInspector = errors.New("this store does not tell who holds a key")

func inspect(ctx context.Context, store lockfx.Store, key string) (lockfx.Lease, error) {
	inspector, ok := store.(lockfx.Inspector)
	if !ok {
		return lockfx.Lease{}, errNoInspector
	}
	return inspector.Inspect(ctx, key)
}

package storetest

import (
	"errors"
	"sync"
	"time"

	"github.com/lockfx/lockfx"
)

// leases has until when, at least, the leases of a case last.
type leases struct {
	mu   sync.Mutex // guards what follows
	last map[string]lockfx.Token
	ends map[lease]time.Time
}

type lease struct {
	key   string
	token lockfx.Token
}

func (l *leases) note(key string, token lockfx.Token, end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends == nil {
		l.last, l.ends = map[string]lockfx.Token{}, map[lease]time.Time{}
	}
	l.last[key], l.ends[lease{key, token}] = token, end
}

// end returns the end of a lease, or the zero time if it was not noted.
func (l *leases) end(key string, token lockfx.Token) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ends[lease{key, token}]
}

// lastEnd returns the end of the lease on key that was noted last.
func (l *leases) lastEnd(key string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ends[lease{key, l.last[key]}]
}

// inTime ends the attempt if a lease that has gone may have expired by now.
func inTime(end time.Time) {
	if !end.IsZero() && !time.Now().Before(end) {
		panic(broken{errTooSlow})
	}
}

var errTooSlow = errors.New("the machine took longer than a lease lasts, so nothing is shown: give the harness a longer TTL")

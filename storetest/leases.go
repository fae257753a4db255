package storetest

import (
	"errors"
	"sync"
	"time"
)

// leases has until when, at least, the leases of a case last.
type leases struct {
	mu   sync.Mutex // guards what follows
	ends map[string]time.Time
}

func (l *leases) note(key string, end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends == nil {
		l.ends = map[string]time.Time{}
	}
	l.ends[key] = end
}

// end returns the zero time for a lease that was not noted.
func (l *leases) end(key string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ends[key]
}

// inTime ends the attempt if a lease that has gone may have expired by now.
func inTime(end time.Time) {
	if !end.IsZero() && !time.Now().Before(end) {
		panic(broken{errTooSlow})
	}
}

var errTooSlow = errors.New("the machine took longer than a lease lasts, so nothing is shown: give the harness a longer TTL")

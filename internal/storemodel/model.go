package storemodel

import (
	"math/rand/v2"
	"time"

	"github.com/lockfx/lockfx"
)

// model says in the plainest way what a store has to answer. It never forgets.
type model struct {
	clock  *Clock
	unit   time.Duration
	wakes  func(<-chan struct{}) bool
	last   lockfx.Token
	leases map[string]modelLease
	issued []lockfx.Token
	watch  map[string][]*modelWatch
}

type modelLease struct {
	token   lockfx.Token
	label   string
	expires time.Time
}

// modelWatch is a watch of the store and whether a signal must be in its channel.
type modelWatch struct {
	freed <-chan struct{}
	stop  func()
	due   bool
}

func (m *model) lease(key string) lockfx.Lease {
	l := m.leases[key]
	if left := l.expires.Sub(m.clock.Now()); left > 0 {
		return lockfx.Lease{Token: l.token, Label: l.label, TimeLeft: left}
	}
	return lockfx.Lease{}
}

func (m *model) acquire(key, label string, ttl time.Duration) lockfx.Grant {
	if l := m.lease(key); l.Token != 0 {
		return lockfx.Grant{HeldBy: l.Label, RetryAfter: l.TimeLeft}
	}
	m.last = max(m.last+1, lockfx.Token(m.clock.Now().UnixMicro()))
	m.issued = append(m.issued, m.last)
	m.leases[key] = modelLease{m.last, label, m.clock.Now().Add(ttl)}
	return lockfx.Grant{OK: true, Token: m.last}
}

func (m *model) renew(key string, token lockfx.Token, ttl time.Duration) bool {
	l := m.lease(key)
	if l.Token == 0 || l.Token != token {
		return false
	}
	m.leases[key] = modelLease{token, l.Label, m.clock.Now().Add(ttl)}
	return true
}

// free is a release, or a break when token is 0.
func (m *model) free(key string, token lockfx.Token) bool {
	l := m.lease(key)
	if l.Token == 0 || token != 0 && l.Token != token {
		return false
	}
	delete(m.leases, key)
	for _, w := range m.watch[key] {
		w.due = true
	}
	return true
}

// anyToken returns the token of key more often than another one of those issued,
// and rarely one that never was.
func (m *model) anyToken(random *rand.Rand, key string) lockfx.Token {
	switch n := random.IntN(10); {
	case n < 6:
		return m.leases[key].token
	case n < 9 && len(m.issued) > 0:
		return m.issued[random.IntN(len(m.issued))]
	default:
		return lockfx.Token(random.IntN(3) - 1)
	}
}

package redis_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/proxy"
)

// overtaken holds the next request of the store up until let is called. The client sends
// it again meanwhile, over another connection.
func (e *engine) overtaken() (let func()) { return e.proxies[e.servers[0].Addr()].HoldNext() }

// eachClient runs a test with a client that ends at deadlines, and with an ordinary one.
func eachClient(t *testing.T, test func(t *testing.T, e *engine)) {
	t.Helper()
	for name, mindful := range map[string]bool{"default client": false, "ContextTimeoutEnabled": true} {
		t.Run(name, func(t *testing.T) {
			e := over(t, single(t))
			e.mindful = mindful
			test(t, e)
		})
	}
}

// The first request of an acquisition arrives when its repetition was granted, the lease
// released, and the key used by others.
func TestALateAcquisitionTakesNothingAfterOthers(t *testing.T) {
	eachClient(t, func(t *testing.T, e *engine) {
		s, other := e.store(t), direct(t, e)
		warm(t, s)
		let := e.overtaken()
		defer let()
		release(t, s, granted(t, s, time.Hour))
		for range 3 {
			release(t, other, granted(t, other, time.Hour))
		}
		let()
		if l := lease(t, other); l != (lockfx.Lease{}) {
			t.Errorf("the late request took the lock: %+v", l)
		}
		granted(t, other, time.Minute)
	})
}

// The same when the repetition met a holder, and when the first lease ended by itself.
func TestALateAcquisitionTakesNothingAfterARefusal(t *testing.T) {
	eachClient(t, func(t *testing.T, e *engine) {
		s, other := e.store(t), direct(t, e)
		warm(t, s)
		held := granted(t, other, time.Hour)
		let := e.overtaken()
		defer let()
		if g, err := s.Acquire(t.Context(), key, time.Hour); g.OK || err != nil {
			t.Fatalf("acquire: %+v, %v; want a refusal", g, err)
		}
		release(t, other, held)
		let()
		if l := lease(t, other); l != (lockfx.Lease{}) {
			t.Errorf("the late request took the lock: %+v", l)
		}
	})
}

func TestALateAcquisitionTakesNothingAfterItsLeaseExpired(t *testing.T) {
	e := over(t, single(t))
	s, other := e.store(t), direct(t, e)
	warm(t, s)
	let := e.overtaken()
	defer let()
	granted(t, s, short)
	expire()
	release(t, other, granted(t, other, time.Hour))
	let()
	if l := lease(t, other); l != (lockfx.Lease{}) {
		t.Errorf("the late request took the lock: %+v", l)
	}
}

// A repetition whose first request was granted, and whose lease has ended meanwhile, is
// a new acquisition.
func TestARepetitionAfterTheEndOfItsLeaseIsGrantedAnew(t *testing.T) {
	e := over(t, single(t))
	s, server := e.store(t), direct(t, e)
	warm(t, s)
	heal, _ := e.inflict(proxy.LoseReplies)
	acquire := call(func() (lockfx.Grant, error) { return s.Acquire(t.Context(), key, time.Hour) })
	eventually(t, "the request reaches the server", func() bool { return lease(t, server).Token != 0 })
	first := lease(t, server).Token
	if ok, err := server.Break(t.Context(), key); !ok || err != nil {
		t.Fatal(ok, err)
	}
	heal()
	if got := <-acquire; got.err != nil || !got.value.OK || got.value.Token <= first {
		t.Errorf("acquire: %+v; want a grant with a token above %d", got, first)
	}
}

// The answer to a release is lost, and others use the key before it is sent again.
func TestARepeatedReleaseIsTrueAfterOthers(t *testing.T) {
	eachClient(t, func(t *testing.T, e *engine) {
		s, other := e.store(t), direct(t, e)
		warm(t, s)
		token := granted(t, s, time.Hour)
		heal, _ := e.inflict(proxy.LoseReplies)
		done := call(func() (bool, error) { return s.Release(t.Context(), key, token) })
		eventually(t, "the release reaches the server", func() bool { return lease(t, other).Token == 0 })
		for range 3 {
			release(t, other, granted(t, other, time.Hour))
		}
		held := granted(t, other, time.Hour)
		heal()
		if got := <-done; !got.value || got.err != nil {
			t.Errorf("release: %+v; want true: it has happened", got)
		}
		if ok, err := s.Release(t.Context(), key, token); ok || err != nil {
			t.Errorf("a second release: %v, %v; want false", ok, err)
		}
		if l := lease(t, other); l.Token != held {
			t.Errorf("the next holder has %+v, want token %d", l, held)
		}
	})
}

// A renewal that shortens a lease is held up while a later one prolongs it.
func TestALateRenewalChangesNothingAfterALaterOne(t *testing.T) {
	eachClient(t, func(t *testing.T, e *engine) {
		s, other := e.store(t), direct(t, e)
		warm(t, s)
		for _, late := range []time.Duration{time.Second, 10 * time.Hour} {
			token := granted(t, s, time.Hour)
			let := e.overtaken()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			if _, err := s.Renew(ctx, key, token, late); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("renew: %v, want the end of its context", err)
			}
			cancel()
			if ok, err := s.Renew(t.Context(), key, token, time.Hour); !ok || err != nil {
				t.Fatal(ok, err)
			}
			let()
			if l := lease(t, other); l.TimeLeft < 59*time.Minute || l.TimeLeft > time.Hour {
				t.Errorf("after a late renewal for %v the lease has %v left, want an hour", late, l.TimeLeft)
			}
			release(t, s, token)
		}
	})
}

// A break is for the holder of its moment: it is held up, its repetition frees the key,
// and the next holder keeps it.
func TestALateBreakLeavesTheNextHolder(t *testing.T) {
	eachClient(t, func(t *testing.T, e *engine) {
		s, other := e.store(t), direct(t, e)
		warm(t, s)
		if _, err := s.Break(t.Context(), key); err != nil { // the server knows its scripts
			t.Fatal(err)
		}
		for _, givenUp := range []bool{false, true} {
			token := granted(t, other, time.Hour)
			let := e.overtaken()
			ctx := t.Context()
			if givenUp {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 20*time.Millisecond)
				defer cancel()
			}
			ok, err := s.Break(ctx, key)
			if givenUp != (err != nil) || ok == givenUp {
				t.Fatalf("break, given up %v: %v, %v", givenUp, ok, err)
			}
			_, _ = other.Release(t.Context(), key, token)
			next := granted(t, other, time.Hour)
			let()
			if l := lease(t, other); l.Token != next {
				t.Errorf("given up %v: the next holder has %+v, want token %d", givenUp, l, next)
			}
			release(t, other, next)
		}
	})
}

package redis_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/redisserver"
	"github.com/lockfx/lockfx/redisstore"
)

// recorded opens a store whose client is watched.
func (e *engine) recorded(t *testing.T) (*redisstore.Store, *recorder) {
	t.Helper()
	client, sent := e.client(), &recorder{}
	client.AddHook(sent)
	s, err := redisstore.New(client, redisstore.WithPrefix(e.prefix))
	if err != nil {
		t.Fatal(err)
	}
	return s, sent
}

func TestEachOperationIsOneRoundTrip(t *testing.T) {
	e := over(t, single(t))
	s, sent := e.recorded(t)
	warm(t, s)
	client := e.servers[0].Client()
	defer client.Close() //nolint:errcheck // a test
	sent.take()
	before := scriptCalls(t, client)
	const n = 20
	for range n {
		token := granted(t, s, time.Minute)
		if ok, err := s.Release(t.Context(), key, token); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if got := len(sent.take()); got != 2*n {
		t.Errorf("%d times acquire and release took %d commands, want 2 each", n, got)
	}
	if got := scriptCalls(t, client) - before; got != 2*n {
		t.Errorf("the server ran %d scripts, want %d", got, 2*n)
	}
	token := granted(t, s, time.Minute)
	sent.take()
	if ok, err := s.Renew(t.Context(), key, token, time.Minute); !ok || err != nil || len(sent.take()) != 1 {
		t.Errorf("renew: %v, %v, or more than one command", ok, err)
	}
}

// A thousand renewals are one pipeline, of few scripts.
func TestManyRenewalsAreFewCommands(t *testing.T) {
	e := over(t, single(t))
	s, sent := e.recorded(t)
	warm(t, s)
	renewals := make([]lockfx.Renewal, 1000)
	for i := range renewals {
		k := strconv.Itoa(i)
		g, err := s.Acquire(t.Context(), k, time.Minute)
		if err != nil || !g.OK {
			t.Fatal(g, err)
		}
		renewals[i] = lockfx.Renewal{Key: k, Token: g.Token, TTL: time.Hour}
	}
	sent.take()
	for i, r := range s.RenewMany(t.Context(), renewals) {
		if !r.OK || r.Err != nil {
			t.Fatalf("renewal %d: %+v", i, r)
		}
	}
	if got := len(sent.take()); got != 10 {
		t.Errorf("%d commands, want 10", got)
	}
}

// A server that has lost its scripts, say by a restart, is told them again.
func TestForgottenScriptsAreSentAgain(t *testing.T) {
	e := over(t, single(t))
	s, client := e.store(t), e.servers[0].Client()
	defer client.Close() //nolint:errcheck // a test
	var token lockfx.Token
	for _, op := range []struct {
		name string
		call func() (bool, error)
	}{
		{"acquire", func() (bool, error) { token = granted(t, s, time.Minute); return true, nil }},
		{"renew", func() (bool, error) { return s.Renew(t.Context(), key, token, time.Minute) }},
		{"renew many", func() (bool, error) {
			r := s.RenewMany(t.Context(), []lockfx.Renewal{{Key: key, Token: token, TTL: time.Minute}})[0]
			return r.OK, r.Err
		}},
		{"inspect", func() (bool, error) { l, err := s.Inspect(t.Context(), key); return l.Token == token, err }},
		{"release", func() (bool, error) { return s.Release(t.Context(), key, token) }},
		{"acquire again", func() (bool, error) { granted(t, s, time.Minute); return true, nil }},
		{"break", func() (bool, error) { return s.Break(t.Context(), key) }},
	} {
		if err := client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if ok, err := op.call(); !ok || err != nil {
			t.Errorf("%s: %v, %v; want true", op.name, ok, err)
		}
	}
}

// The kit's cases on a client's clock rest on this: nothing that the store sends
// comes from that clock.
func TestNoCommandCarriesTheClientsClock(t *testing.T) {
	e := over(t, single(t))
	s, sent := e.recorded(t)
	warm(t, s)
	sent.take() // an earlier token
	token := granted(t, s, time.Minute)
	for _, op := range []func() (bool, error){
		func() (bool, error) { return s.Renew(t.Context(), key, token, time.Minute) },
		func() (bool, error) {
			r := s.RenewMany(t.Context(), []lockfx.Renewal{{Key: key, Token: token, TTL: time.Minute}})[0]
			return r.OK, r.Err
		},
		func() (bool, error) { l, err := s.Inspect(t.Context(), key); return l.Token == token, err },
		func() (bool, error) { return s.Release(t.Context(), key, token) },
	} {
		if ok, err := op(); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	commands := sent.take()
	if len(commands) < 5 {
		t.Fatalf("only %d commands were seen", len(commands))
	}
	for _, args := range commands {
		for _, arg := range args {
			if arg == int64(token) || arg == token.String() {
				continue // from the server's clock
			}
			if unit := instant(fmt.Sprint(arg)); unit != 0 {
				t.Errorf("%v has %v, an instant in units of %v", args[0], arg, unit)
			}
		}
	}
	if instant(strconv.FormatInt(time.Now().UnixMilli(), 10)) == 0 {
		t.Error("an instant was not recognised")
	}
}

// instant returns the unit in which text is an instant within a day from now, or 0.
func instant(text string) time.Duration {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond, time.Nanosecond} {
		if n > 1<<62/int64(unit) {
			continue
		}
		if off := time.Since(time.Unix(0, n*int64(unit))); off.Abs() < 24*time.Hour {
			return unit
		}
	}
	return 0
}

// Whoever may not use pub/sub can lock all the same, and learns why they can't wait
// for a message.
func TestAUserWithoutChannelsCanLockAndMustPoll(t *testing.T) {
	e := over(t, single(t))
	admin := e.servers[0].Client()
	defer admin.Close() //nolint:errcheck // a test
	if err := admin.Do(t.Context(), "acl", "setuser", "locker", "on", ">secret", "~*", "+@all", "resetchannels").Err(); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: e.servers[0].Addr(), Username: "locker", Password: "secret"})
	defer client.Close() //nolint:errcheck // a test
	s, err := redisstore.New(client, redisstore.WithPrefix(e.prefix))
	if err != nil {
		t.Fatal(err)
	}
	warm(t, s)
	_, _, err = s.Watch(t.Context(), key)
	refusedAs(t, err, "NOPERM")
	granted(t, s, time.Minute)
	if ok, err := s.Break(t.Context(), key); !ok || err != nil {
		t.Errorf("break: %v, %v", ok, err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A plain client can stand before a cluster: of one node, or behind a proxy. One
// script there reaches one slot.
func TestManyRenewalsThroughAPlainClientOfACluster(t *testing.T) {
	c, err := redisserver.StartCluster(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	e := over(t, c.Nodes[0])
	s, sent := e.recorded(t)
	renewals := make([]lockfx.Renewal, 250)
	for i := range renewals {
		k := strconv.Itoa(i)
		g, err := s.Acquire(t.Context(), k, time.Minute)
		if err != nil || !g.OK {
			t.Fatal(g, err)
		}
		renewals[i] = lockfx.Renewal{Key: k, Token: g.Token, TTL: time.Hour}
	}
	renewals = append(renewals, lockfx.Renewal{Key: "0", Token: 1, TTL: time.Hour})
	for range 2 {
		sent.take()
		for i, r := range s.RenewMany(t.Context(), renewals) {
			if r.OK != (i < 250) || r.Err != nil {
				t.Fatalf("renewal %d: %+v", i, r)
			}
		}
	}
	if got := len(sent.take()); got != len(renewals) {
		t.Errorf("%d commands once the cluster is known, want one for each renewal: %d", got, len(renewals))
	}
}

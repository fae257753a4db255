package redis_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/redisstore"
)

// The chapter "Running it" of redisstore's README, statement by statement. That a full
// server keeps and frees leases is TestAFullServerKeepsAndFreesLeases.

func TestAnyPolicyButNoevictionEvictsHeldLocks(t *testing.T) {
	for _, policy := range []string{
		"noeviction", "allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl",
	} {
		t.Run(policy, func(t *testing.T) {
			e := over(t, single(t, "--maxmemory-policy", policy))
			s := e.store(t)
			admin := e.servers[0].Client()
			defer admin.Close() //nolint:errcheck // a test
			first := granted(t, s, time.Hour)
			empty := fill(t, admin)
			_ = admin.Set(t.Context(), "filler", strings.Repeat("x", 1000), 0).Err() // evicts what it may
			empty()
			g, err := s.Acquire(t.Context(), key, time.Hour)
			if err != nil || g.OK != (policy != "noeviction") {
				t.Fatalf("acquire what is held: %+v, %v", g, err)
			}
			if !g.OK {
				return
			}
			if g.Token <= first {
				t.Errorf("token %d after %d", g.Token, first)
			}
			if ok, err := s.Renew(t.Context(), key, first, time.Hour); ok || err != nil {
				t.Errorf("the first holder's heartbeat: %v, %v; want false", ok, err)
			}
		})
	}
}

func TestTooFewReplicasStopGrantsRenewalsAndReleases(t *testing.T) {
	e := over(t, single(t))
	s := e.store(t)
	admin := e.servers[0].Client()
	defer admin.Close() //nolint:errcheck // a test
	token := granted(t, s, time.Hour)
	if err := admin.ConfigSet(t.Context(), "min-replicas-to-write", "1").Err(); err != nil {
		t.Fatal(err)
	}
	for name, op := range map[string]func() (bool, error){
		"acquire": func() (bool, error) {
			g, err := s.Acquire(t.Context(), "another", time.Minute)
			return g.OK, err
		},
		"renew":   func() (bool, error) { return s.Renew(t.Context(), key, token, time.Minute) },
		"release": func() (bool, error) { return s.Release(t.Context(), key, token) },
	} {
		if ok, err := op(); ok || !errors.Is(err, lockfx.ErrStore) || !strings.Contains(err.Error(), "NOREPLICAS") {
			t.Errorf("%s: %v, %v; want an error that says NOREPLICAS", name, ok, err)
		}
	}
	if l := lease(t, s); l.Token != token {
		t.Errorf("inspect: %+v; want token %d", l, token)
	}
}

// A primary that is cut off, and a replica that was promoted meanwhile, grant one key to
// two. min-replicas-to-write ends that on the side that lost its replica.
func TestACutOffPrimaryMakesTwoHolders(t *testing.T) {
	primary := single(t, "--min-replicas-max-lag", "1")
	replica := behind(t, primary.Addr())
	on := func(addr string) (*redis.Client, *redisstore.Store) {
		client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
		t.Cleanup(func() { _ = client.Close() })
		s, err := redisstore.New(client)
		if err != nil {
			t.Fatal(err)
		}
		return client, s
	}
	old, stale := on(primary.Addr())
	promoted, next := on(replica)
	if err := promoted.ReplicaOf(t.Context(), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	granted(t, stale, time.Hour)
	granted(t, next, time.Hour)

	if err := old.ConfigSet(t.Context(), "min-replicas-to-write", "1").Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the primary grants nothing", func() bool {
		_, err := stale.Acquire(t.Context(), "another", short)
		return err != nil && strings.Contains(err.Error(), "NOREPLICAS")
	})
}

// command is what the README shows for redis-cli, for a record of this engine, with what
// it says about it.
func (e *engine) command(t *testing.T, words string) (args []any, says string) {
	t.Helper()
	lines, err := documented("redis-cli " + words)
	if err != nil || len(lines) != 1 {
		t.Fatal(lines, err)
	}
	text, says, _ := strings.Cut(strings.TrimPrefix(lines[0], "redis-cli "), "  ")
	text = strings.ReplaceAll(text, "lockfx:", e.prefix)
	for _, word := range strings.Fields(text) {
		args = append(args, strings.Trim(word, "'"))
	}
	return args, strings.TrimSpace(says)
}

// do runs a command of the README.
func (e *engine) do(t *testing.T, admin *redis.Client, words string) any {
	t.Helper()
	args, _ := e.command(t, words)
	value, err := admin.Do(t.Context(), args...).Result()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return value
}

// The README's key.
const documentedKey = "nightly"

func TestAKeyIsFreedByHand(t *testing.T) {
	e := over(t, single(t))
	s := e.store(t)
	admin := e.servers[0].Client()
	defer admin.Close() //nolint:errcheck // a test
	for _, free := range []func(){
		func() {
			e.do(t, admin, "HDEL")
			e.do(t, admin, "PUBLISH")
		},
		func() {
			admin.Del(t.Context(), e.recordOf(documentedKey))
			e.do(t, admin, "PUBLISH")
		},
	} {
		held, err := s.Acquire(t.Context(), documentedKey, time.Hour)
		if err != nil || !held.OK {
			t.Fatal(held, err)
		}
		freed, stop := watch(t, s, documentedKey)
		for len(freed) > 0 {
			<-freed
		}
		free()
		signal(t, freed)
		stop()
		if ok, err := s.Renew(t.Context(), documentedKey, held.Token, time.Hour); ok || err != nil {
			t.Errorf("the holder's heartbeat: %v, %v; want false", ok, err)
		}
		next, err := s.Acquire(t.Context(), documentedKey, time.Hour)
		if err != nil || !next.OK || next.Token <= held.Token {
			t.Errorf("%+v, %v after token %d", next, err, held.Token)
		}
		if ok, err := s.Break(t.Context(), documentedKey); !ok || err != nil {
			t.Error(ok, err)
		}
	}
}

func TestTheEnginesToolsShowWhatTheReadmeSays(t *testing.T) {
	e := over(t, single(t))
	s := e.store(t)
	admin := e.servers[0].Client()
	defer admin.Close() //nolint:errcheck // a test
	pattern, _ := e.command(t, "PSUBSCRIBE")
	releases := admin.PSubscribe(t.Context(), pattern[1].(string))
	defer releases.Close() //nolint:errcheck // a test
	if _, err := releases.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx := lockfx.WithLabel(t.Context(), "host/4711/app")
	g, err := s.Acquire(ctx, documentedKey, time.Hour)
	if err != nil || !g.OK {
		t.Fatal(g, err)
	}
	all, _ := e.command(t, "HGETALL")
	record := admin.HGetAll(t.Context(), all[1].(string)).Val()
	if record["label"] != "host/4711/app" || record["token"] != g.Token.String() || record["since"] == "" || record["ttl"] != "3600000000" {
		t.Errorf("HGETALL: %v", record)
	}
	if left := e.do(t, admin, "PTTL").(int64); left < time.Hour.Milliseconds() {
		t.Errorf("PTTL: %d ms", left)
	}
	freed, _ := watch(t, s, documentedKey)
	watch(t, s, "another")
	for len(freed) > 0 {
		<-freed
	}
	if list := e.do(t, admin, "CLIENT LIST").(string); strings.Count(list, "\n") != 2 { // and the releases above
		t.Errorf("CLIENT LIST: %s", list)
	}
	if ok, err := s.Release(t.Context(), documentedKey, g.Token); !ok || err != nil {
		t.Fatal(ok, err)
	}
	message, err := releases.ReceiveMessage(t.Context())
	if err != nil || message.Payload != g.Token.String() {
		t.Errorf("PSUBSCRIBE: %v, %v; want token %d", message, err, g.Token)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	let := e.overtaken()
	if _, err := s.Acquire(ctx, documentedKey, time.Hour); err == nil {
		t.Error("acquire was not held up")
	}
	eventually(t, "its undo arrives", func() bool { return len(scan(t, e, admin, ":undone:")) == 1 })
	let()
	if got := scan(t, e, admin, ":freed:"); len(got) != 1 {
		t.Errorf("traces of releases: %q", got)
	}
	if info := e.do(t, admin, "INFO commandstats").(string); !strings.Contains(info, "cmdstat_evalsha:calls=") {
		t.Errorf("INFO: %s", info)
	}
}

// scan runs the README's command that finds names with a part.
func scan(t *testing.T, e *engine, admin *redis.Client, part string) []string {
	t.Helper()
	lines, err := documented("redis-cli --scan --pattern 'lockfx:*" + part)
	if err != nil {
		t.Fatal(err)
	}
	pattern := strings.Split(strings.ReplaceAll(lines[0], "lockfx:", e.prefix), "'")[1]
	keys, _, err := admin.Scan(t.Context(), 0, pattern, 1000).Result()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// What a release and a repeated acquisition leave behind is small, and does not stay.
func TestTracesAreSmallAndDoNotStay(t *testing.T) {
	e := over(t, single(t))
	s, admin := e.store(t), e.servers[0].Client()
	defer admin.Close() //nolint:errcheck // a test
	warm(t, s)
	let := e.overtaken()
	release(t, s, granted(t, s, time.Hour)) // granted to its repetition
	let()
	for part, longest := range map[string]time.Duration{":freed:": time.Minute, ":undone:": 5 * time.Minute} {
		names := scan(t, e, admin, part)
		if len(names) == 0 {
			t.Errorf("nothing is left of %s", part)
		}
		for _, name := range names {
			size := admin.MemoryUsage(t.Context(), name).Val() - int64(len(e.prefix)-len("lockfx:"))
			if left := admin.PTTL(t.Context(), name).Val(); left <= 0 || left > longest || size > 150 {
				t.Errorf("%s: %d bytes, for %v", name, size, left)
			}
			t.Logf("%s: %d bytes", part, size)
		}
	}
}

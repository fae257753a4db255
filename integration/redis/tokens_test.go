package redis_test

import (
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/proxy"
	"github.com/lockfx/lockfx/integration/redisserver"
	"github.com/lockfx/lockfx/redisstore"
)

// recordOf is the name of the record of key.
func (e *engine) recordOf(key string) string {
	return e.prefix + "{" + strings.ReplaceAll(key, "}", "%7D") + "}"
}

// dialled waits until no client dials. For a caller who has left, go-redis goes on for a
// while; a client that is closed meanwhile asks its sentinel anew, over a connection that
// nobody closes.
func dialled(t *testing.T) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	eventually(t, "no client dials", func() bool {
		n := runtime.Stack(stacks, true)
		return !strings.Contains(string(stacks[:n]), "pool.(*ConnPool).dialConn")
	})
}

// A replica that was cut off misses grants, and a sentinel makes it the primary. A
// counter would issue their tokens again.
func TestCase_T02_TokensRiseAcrossAPromotion(t *testing.T) {
	primary := single(t)
	link, err := proxy.New(primary.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(link.Close)
	replica := single(t, "--replicaof", strings.Replace(link.Addr(), ":", " ", 1))
	onReplica := redis.NewClient(&redis.Options{Addr: replica.Addr()}) // a promotion cuts connections
	defer onReplica.Close()                                            //nolint:errcheck // a test
	eventually(t, "the replica follows", func() bool {
		return stats(t, onReplica, "replication", "master_link_status") == "up"
	})
	sentinel, err := redisserver.StartSentinel(t.Context(), primary)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sentinel.Stop)
	onSentinel := redis.NewSentinelClient(&redis.Options{Addr: sentinel.Addr()})
	defer onSentinel.Close() //nolint:errcheck // a test
	eventually(t, "the sentinel knows the replica", func() bool {
		replicas, err := onSentinel.Replicas(t.Context(), redisserver.SentinelName).Result()
		return err == nil && len(replicas) == 1
	})

	client := redisserver.SentinelClient(sentinel)
	defer client.Close() //nolint:errcheck // a test
	store, err := redisstore.New(client)
	if err != nil {
		t.Fatal(err)
	}
	defer dialled(t)
	const record = "lockfx:{nightly {1%7D}"
	known := func() lockfx.Token {
		n, _ := strconv.ParseInt(onReplica.HGet(t.Context(), record, "token").Val(), 10, 64)
		return lockfx.Token(n)
	}
	warm(t, store)
	eventually(t, "the replica has the first token", func() bool { return known() > 0 })
	link.Inflict(proxy.BlackHole)
	var last lockfx.Token
	for range 20 {
		last = granted(t, store, time.Hour)
		if ok, err := store.Release(t.Context(), key, last); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	held := granted(t, store, time.Hour)
	primary.Process().Kill()

	eventually(t, "the replica is promoted", func() bool {
		return stats(t, onReplica, "replication", "role") == "master"
	})
	if known() >= last {
		t.Fatalf("the replica was to miss tokens up to %d, and has %d", last, known())
	}
	var next lockfx.Grant
	eventually(t, "the client finds the new primary", func() bool {
		next, err = store.Acquire(t.Context(), key, time.Minute)
		return err == nil
	})
	if !next.OK || next.Token <= held {
		t.Errorf("%+v after token %d; want a greater one", next, held)
	}
	if ok, err := store.Renew(t.Context(), key, held, time.Minute); ok || err != nil {
		t.Errorf("renew with the token from before: %v, %v; want false", ok, err)
	}
}

func TestTokensRiseWhenTheServersClockIsSetBack(t *testing.T) {
	e := over(t, single(t))
	s, client := e.store(t), e.servers[0].Client()
	defer client.Close() //nolint:errcheck // a test
	warm(t, s)
	ahead := time.Now().Add(time.Hour).UnixMicro() // as if granted before
	client.HSet(t.Context(), e.recordOf(key), "token", ahead)
	for i := range int64(5) {
		token := granted(t, s, time.Minute)
		if want := lockfx.Token(ahead + 1 + i); token != want {
			t.Fatalf("token %d, want %d", token, want)
		}
		if ok, err := s.Release(t.Context(), key, token); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
}

// Scripts count in doubles: the last tokens that they can tell apart are issued
// exactly, and then none.
func TestNoDigitOfATokenIsLost(t *testing.T) {
	e := over(t, single(t))
	s, client := e.store(t), e.servers[0].Client()
	defer client.Close() //nolint:errcheck // a test
	const last = 1<<53 - 1
	client.HSet(t.Context(), e.recordOf(key), "token", last-3)
	for want := lockfx.Token(last - 2); want <= last; want++ {
		token := granted(t, s, time.Minute)
		if token != want {
			t.Fatalf("token %d, want %d", token, want)
		}
		if ok, err := s.Renew(t.Context(), key, token-1, time.Minute); ok || err != nil {
			t.Errorf("renew with the token before: %v, %v", ok, err)
		}
		if l, err := s.Inspect(t.Context(), key); err != nil || l.Token != token {
			t.Errorf("inspect: %+v, %v; want token %d", l, err, token)
		}
		if ok, err := s.Release(t.Context(), key, token); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	_, err := s.Acquire(t.Context(), key, time.Minute)
	if !errors.Is(err, lockfx.ErrStore) || !strings.Contains(err.Error(), "no token is left") {
		t.Errorf("acquire: %v; want an error that says no token is left", err)
	}
}

// Cases T01 and T03: a token outlives its lease, for a while that ends.
func TestCase_T03_AnUnusedKeyCostsNothingAfterAWhile(t *testing.T) {
	const memory = 2 * time.Hour
	e := over(t, single(t))
	s, client := e.store(t, redisstore.WithMemory(memory)), e.servers[0].Client()
	defer client.Close()     //nolint:errcheck // a test
	const slow = time.Minute // for what passes between the grant and the look
	remembered := func(atLeast time.Duration) {
		t.Helper()
		keys := client.Keys(t.Context(), e.prefix+"*").Val()
		if len(keys) != 1 || keys[0] != e.recordOf(key) {
			t.Fatalf("the store has the keys %q, want the record alone", keys)
		}
		if left := client.PTTL(t.Context(), keys[0]).Val(); left < atLeast-slow || left > atLeast+memory {
			t.Errorf("the record stays for %v, want %v to %v, less what has passed", left, atLeast, atLeast+memory)
		}
	}
	token := granted(t, s, time.Hour)
	remembered(time.Hour + memory)
	if kept := client.HGet(t.Context(), e.recordOf(key), "kept").Val(); kept == "" {
		t.Error("the record does not say how long it is kept")
	}
	if ok, err := s.Renew(t.Context(), key, token, 9*time.Hour); !ok || err != nil {
		t.Fatal(ok, err)
	}
	remembered(9*time.Hour + memory)
	if ok, err := s.Release(t.Context(), key, token); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if left := client.PTTL(t.Context(), e.recordOf(key)).Val(); left < memory-slow {
		t.Errorf("after its release the token is remembered for %v, want at least %v", left, memory)
	}
	if got := client.HGet(t.Context(), e.recordOf(key), "token").Val(); got != token.String() {
		t.Errorf("after its release the record has token %s, want %d", got, token)
	}
	// Used again and again, the record is not asked to stay longer at each call.
	before := client.HGet(t.Context(), e.recordOf(key), "kept").Val()
	warm(t, s)
	if after := client.HGet(t.Context(), e.recordOf(key), "kept").Val(); after != before {
		t.Errorf("kept until %s, and a call later until %s", before, after)
	}
}

func TestAKeyOfAnotherTypeIsAnError(t *testing.T) {
	e := over(t, single(t))
	s, client := e.store(t), e.servers[0].Client()
	defer client.Close() //nolint:errcheck // a test
	client.Set(t.Context(), e.recordOf(key), "somebody's", 0)
	if g, err := s.Acquire(t.Context(), key, time.Minute); g.OK || !errors.Is(err, lockfx.ErrStore) || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("acquire: %+v, %v; want an error of the store that says why", g, err)
	}
}

package redis_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/proxy"
	"github.com/lockfx/lockfx/redisstore"
)

func refusedAs(t *testing.T, err error, why string) {
	t.Helper()
	if !errors.Is(err, lockfx.ErrStore) || !strings.Contains(err.Error(), why) {
		t.Errorf("watch: %v; want an error of the store that says %s", err, why)
	}
}

func watch(t *testing.T, s *redisstore.Store, key string) (<-chan struct{}, func()) {
	t.Helper()
	freed, stop, err := s.Watch(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return freed, stop
}

// signal waits for a signal, and reports whether the watch still lives.
func signal(t *testing.T, freed <-chan struct{}) bool {
	t.Helper()
	select {
	case _, alive := <-freed:
		return alive
	case <-time.After(30 * time.Second):
		t.Fatal("no signal")
		return false
	}
}

func TestOneConnectionServesAllWatchesAndEndsWithTheLast(t *testing.T) {
	e := over(t, single(t))
	s, server := direct(t, e), direct(t, e) // a proxy would have goroutines of its own
	client := e.servers[0].Client()
	defer client.Close() //nolint:errcheck // a test
	warm(t, s)
	warm(t, server)
	before := runtime.NumGoroutine()
	for range 2 { // a store goes on after its last watch
		var stops []func()
		var freed []<-chan struct{}
		for i := range 200 {
			f, stop := watch(t, s, "key "+strconv.Itoa(i%40))
			stops, freed = append(stops, stop), append(freed, f)
		}
		if n := subscriptions(t, client); n != 1 {
			t.Errorf("200 watches of 40 keys have %d connections, want 1", n)
		}
		g, err := server.Acquire(t.Context(), "key 7", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range freed { // the confirmation of a subscription may signal
			select {
			case <-f:
			default:
			}
		}
		if ok, err := server.Release(t.Context(), "key 7", g.Token); !ok || err != nil {
			t.Fatal(ok, err)
		}
		for i := 7; i < len(freed); i += 40 {
			signal(t, freed[i])
		}
		for _, stop := range stops {
			stop()
		}
		eventually(t, "the subscription ends", func() bool { return subscriptions(t, client) == 0 })
		eventually(t, "its goroutines end", func() bool { return runtime.NumGoroutine() <= before })
	}
}

// Fifty who wait in the usual order, for a lock that stays held.
func TestFiftyIdleWaitersCostNearlyNothing(t *testing.T) {
	e := over(t, single(t))
	s, client := e.store(t), e.servers[0].Client()
	defer client.Close() //nolint:errcheck // a test
	granted(t, s, time.Hour)
	for range 50 {
		freed, _ := watch(t, s, key)
		g, err := s.Acquire(t.Context(), key, time.Minute)
		if err != nil || g.OK || g.RetryAfter < time.Minute {
			t.Fatalf("%+v, %v; want a refusal that says how long", g, err)
		}
		select {
		case <-freed: // the confirmation of the subscription
		default:
		}
	}
	processed := func() int {
		n, err := strconv.Atoi(stats(t, client, "stats", "total_commands_processed"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	const seconds = 6
	before := processed()
	time.Sleep(seconds * time.Second)
	if n := processed() - before - 1; n > seconds { // less the question itself
		t.Errorf("50 idle waiters sent %d commands in %d s, want at most 1 a second", n, seconds)
	}
}

// While the connection is away releases go unheard. Whoever watches is woken once it
// is back.
func TestAReconnectionMissesNoWakeUp(t *testing.T) {
	e := over(t, single(t))
	s, server := e.store(t), direct(t, e)
	client := e.servers[0].Client()
	defer client.Close() //nolint:errcheck // a test
	freed, _ := watch(t, s, key)
	for range 50 {
		token := granted(t, server, time.Hour)
		for {
			select {
			case <-freed: // from the round before
				continue
			default:
			}
			break
		}
		if err := client.Do(t.Context(), "client", "kill", "type", "pubsub").Err(); err != nil {
			t.Fatal(err)
		}
		if ok, err := server.Release(t.Context(), key, token); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if !signal(t, freed) {
			t.Fatal("the watch was lost")
		}
		eventually(t, "the subscription is back", func() bool { return subscriptions(t, client) == 1 })
	}
}

// curt is a connection that breaks as soon as a subscription was confirmed.
type curt struct {
	net.Conn
	over bool
}

func (c *curt) Read(b []byte) (int, error) {
	if c.over {
		return 0, io.EOF
	}
	n, err := c.Conn.Read(b)
	c.over = bytes.Contains(b[:n], []byte("subscribe"))
	return n, err
}

func TestSubscriptionsThatDoNotLastAreNoFlood(t *testing.T) {
	e := over(t, single(t))
	var connections atomic.Int64
	client := redis.NewClient(&redis.Options{Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
		connections.Add(1)
		c, err := new(net.Dialer).DialContext(ctx, network, e.servers[0].Addr())
		return &curt{Conn: c}, err
	}})
	defer client.Close() //nolint:errcheck // a test
	s, err := redisstore.New(client, redisstore.WithPrefix(e.prefix))
	if err != nil {
		t.Fatal(err)
	}
	freed, stop := watch(t, s, key)
	for range 5 {
		if !signal(t, freed) { // of each new subscription
			t.Fatal("the watch was lost")
		}
	}
	before := connections.Load()
	time.Sleep(time.Second)
	if n := connections.Load() - before; n > 30 { // the client tries each a second time
		t.Errorf("%d connections in a second", n)
	}
	stop()
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAWatchThatCannotBeMadeAnewIsClosed(t *testing.T) {
	e := over(t, single(t))
	s := e.store(t)
	freed, stop := watch(t, s, key)
	heal, _ := e.inflict(proxy.Drop)
	for signal(t, freed) { // the confirmation of the subscription may have come
		continue
	}
	stop()
	if _, _, err := s.Watch(t.Context(), key); !errors.Is(err, lockfx.ErrStore) {
		t.Errorf("watch in an outage: %v; want an error of the store", err)
	}
	heal()
	freed, _ = watch(t, s, key)
	if ok, err := s.Release(t.Context(), key, granted(t, s, time.Minute)); !ok || err != nil {
		t.Fatal(ok, err)
	}
	signal(t, freed)
}

// A connection over which nothing comes any more looks alive. Whoever waits is woken
// within 4 s all the same, as the documentation says.
func TestWaitersOnADeadConnectionAreWokenInTime(t *testing.T) {
	e := over(t, single(t))
	s, server := e.store(t), direct(t, e)
	client := e.servers[0].Client()
	defer client.Close() //nolint:errcheck // a test
	freed, _ := watch(t, s, key)
	for signalled := true; signalled; {
		select {
		case <-freed:
		default:
			signalled = false
		}
	}
	e.silence()
	begun := time.Now()
	release(t, server, granted(t, server, time.Hour))
	if !signal(t, freed) {
		t.Error("the watch was lost")
	}
	if took := time.Since(begun); took > 4*time.Second {
		t.Errorf("the signal came after %v", took)
	}
}

func TestClosingTheStoreClosesItsWatches(t *testing.T) {
	e := over(t, single(t))
	s, client := e.store(t), e.servers[0].Client()
	defer client.Close() //nolint:errcheck // a test
	freed, _ := watch(t, s, key)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for signal(t, freed) {
		continue
	}
	eventually(t, "the subscription ends", func() bool { return subscriptions(t, client) == 0 })
	if _, _, err := s.Watch(t.Context(), key); err != nil {
		t.Errorf("watch after close: %v; a store can be used again", err)
	}
}

// A renewal that shortens the lease tells those who were told a longer time.
func TestAShorterLeaseWakes(t *testing.T) {
	e := over(t, single(t))
	s := e.store(t)
	token := granted(t, s, time.Hour)
	freed, _ := watch(t, s, key)
	select {
	case <-freed:
	default:
	}
	if ok, err := s.Renew(t.Context(), key, token, time.Minute); !ok || err != nil {
		t.Fatal(ok, err)
	}
	signal(t, freed)
}

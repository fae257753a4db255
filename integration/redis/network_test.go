package redis_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/proxy"
	"github.com/lockfx/lockfx/redisstore"
)

const key = "nightly {1}" // braces must not change its slot

// A direct store shows what the server knows, whatever the network does to others.
func direct(t *testing.T, e *engine) *redisstore.Store {
	t.Helper()
	client := e.servers[0].Client()
	t.Cleanup(func() { _ = client.Close() })
	s, err := redisstore.New(client, redisstore.WithPrefix(e.prefix))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func lease(t *testing.T, s *redisstore.Store) lockfx.Lease {
	t.Helper()
	l, err := s.Inspect(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func granted(t *testing.T, s lockfx.Store, ttl time.Duration) lockfx.Token {
	t.Helper()
	g, err := s.Acquire(t.Context(), key, ttl)
	if err != nil || !g.OK {
		t.Fatalf("acquire: %+v, %v; want a grant", g, err)
	}
	return g.Token
}

// eventually waits for what another goroutine or process will do.
func eventually(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !happened(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

// call runs f and returns a channel for its result.
func call[T any](f func() (T, error)) <-chan result[T] {
	done := make(chan result[T], 1)
	go func() {
		v, err := f()
		done <- result[T]{v, err}
	}()
	return done
}

type result[T any] struct {
	value T
	err   error
}

// The client repeats a request whose reply was lost. The repetition must not meet
// what the request itself has done.
func TestARepeatedRequestMeetsItself(t *testing.T) {
	e := over(t, single(t))
	server := direct(t, e)
	warm(t, server)
	// repeated calls op while replies are lost, until the request has arrived.
	repeated := func(op func(*redisstore.Store) (any, error), arrived func(lockfx.Lease) bool) any {
		t.Helper()
		s := e.store(t)
		lease(t, s)
		heal, err := e.inflict(proxy.LoseReplies)
		if err != nil {
			t.Fatal(err)
		}
		done := call(func() (any, error) { return op(s) })
		eventually(t, "the request reaches the server", func() bool { return arrived(lease(t, server)) })
		heal()
		got := <-done
		if got.err != nil {
			t.Fatal(got.err)
		}
		return got.value
	}

	grant := repeated(func(s *redisstore.Store) (any, error) { return s.Acquire(t.Context(), key, time.Minute) },
		func(l lockfx.Lease) bool { return l.Token != 0 })
	token := lease(t, server).Token
	if want := (lockfx.Grant{OK: true, Token: token}); grant != want {
		t.Fatalf("acquire: %+v, want %+v: the lease that its first request took", grant, want)
	}
	if ok := repeated(func(s *redisstore.Store) (any, error) { return s.Renew(t.Context(), key, token, time.Hour) },
		func(l lockfx.Lease) bool { return l.TimeLeft > time.Minute }); ok != true {
		t.Error("renew: false, want true")
	}
	if ok := repeated(func(s *redisstore.Store) (any, error) { return s.Release(t.Context(), key, token) },
		func(l lockfx.Lease) bool { return l.Token == 0 }); ok != true {
		t.Error("release: false, want true: it has happened")
	}
	if ok, err := server.Release(t.Context(), key, token); ok || err != nil {
		t.Errorf("a second release: %v, %v; want false", ok, err)
	}
}

func TestCase_A02_ALostReplyLeavesNoLease(t *testing.T) {
	e := over(t, single(t))
	s, server := e.store(t), direct(t, e)
	warm(t, s)
	heal, _ := e.inflict(proxy.LoseReplies)
	defer heal()
	ctx, cancel := context.WithCancel(t.Context())
	acquire := call(func() (lockfx.Grant, error) { return s.Acquire(ctx, key, time.Hour) })
	eventually(t, "the acquisition reaches the server", func() bool { return lease(t, server).Token != 0 })
	cancel()
	if got := <-acquire; got.value.OK || !errors.Is(got.err, context.Canceled) {
		t.Errorf("acquire: %+v, want the end of its context", got)
	}
	heal()
	eventually(t, "the lease is undone", func() bool { return lease(t, server).Token == 0 })
}

// warm opens a connection and makes the scripts known to the server: while replies are
// lost, neither is possible.
func warm(t *testing.T, s *redisstore.Store) {
	t.Helper()
	token := granted(t, s, time.Minute)
	if ok, err := s.Renew(t.Context(), key, token, time.Minute); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if ok, err := s.Release(t.Context(), key, token); !ok || err != nil {
		t.Fatal(ok, err)
	}
}

// A request that is held up arrives after its caller has given up and undone it. The
// undo left a tombstone for it. Without the tombstone it would take the lock for
// nobody: the fault that is planted second.
func TestADelayedRequestDoesNotOvertakeItsUndo(t *testing.T) {
	for _, planted := range []bool{false, true} {
		e := over(t, single(t))
		s, server := e.store(t), direct(t, e)
		warm(t, s)

		let := e.proxies[e.servers[0].Addr()].Hold()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := s.Acquire(ctx, key, time.Hour)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("acquire: %v, want the end of its context", err)
		}
		client := e.servers[0].Client()
		defer client.Close() //nolint:errcheck // a test
		tombstones := func() []string { return client.Keys(t.Context(), "*:undone:*").Val() }
		eventually(t, "the undo leaves a tombstone", func() bool { return len(tombstones()) == 1 })
		if ttl := client.PTTL(t.Context(), tombstones()[0]).Val(); ttl <= 0 || ttl > 5*time.Minute {
			t.Errorf("the tombstone stays for %v", ttl)
		}
		if planted {
			client.Del(t.Context(), tombstones()...)
		}
		scripts := scriptCalls(t, client)
		let()
		eventually(t, "the delayed request arrives", func() bool { return scriptCalls(t, client) > scripts })
		if got := lease(t, server).Token; (got != 0) != planted {
			t.Errorf("planted fault %v: the delayed request left token %d", planted, got)
		}
	}
}

func TestCase_A05_AnOutageIsNoRefusal(t *testing.T) {
	e := over(t, single(t))
	s := e.store(t)
	warm(t, s)
	for _, fault := range []proxy.Fault{proxy.Drop, proxy.BlackHole} {
		heal, _ := e.inflict(fault)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		g, err := s.Acquire(ctx, key, time.Minute)
		cancel()
		if g != (lockfx.Grant{}) || err == nil {
			t.Errorf("acquire in an outage: %+v, %v; want an error", g, err)
		}
		heal()
	}
	server := e.servers[0]
	server.Process().Kill()
	if g, err := s.Acquire(t.Context(), key, time.Minute); g.OK || !errors.Is(err, lockfx.ErrStore) {
		t.Errorf("acquire without a server: %+v, %v; want an error that matches lockfx.ErrStore", g, err)
	}
}

// A paused server answers nobody, and its connections stay open. A call ends with
// its context all the same, and what the server then reads late does not count.
func TestCase_A08_TheClockIsReadAtTheDecision(t *testing.T) {
	s := single(t)
	e := over(t, s)
	store := e.store(t)
	const ttl = 200 * time.Millisecond
	token := granted(t, store, ttl)
	resume, err := s.Process().Pause()
	if err != nil {
		t.Fatal(err)
	}
	renew := call(func() (bool, error) { return store.Renew(t.Context(), key, token, time.Hour) })
	time.Sleep(2 * ttl) // the lease ends while the request waits at the server
	resume()
	if got := <-renew; got.err != nil || got.value {
		t.Errorf("renew: %+v; want false: the lease was over when the server decided", got)
	}
	if next := granted(t, store, ttl); next <= token {
		t.Errorf("token %d after %d", next, token)
	}
}

func TestACallEndsWithItsContextWhileTheServerHangs(t *testing.T) {
	for _, mindful := range []bool{false, true} {
		t.Run("mindful "+strconv.FormatBool(mindful), func(t *testing.T) { endsWithItsContext(t, mindful) })
	}
}

func endsWithItsContext(t *testing.T, mindful bool) {
	t.Helper()
	s := single(t)
	e := over(t, s)
	e.mindful = mindful
	store := e.store(t)
	warm(t, store)
	token := granted(t, store, time.Hour)
	resume, err := s.Process().Pause()
	if err != nil {
		t.Fatal(err)
	}
	defer resume()
	reason := errors.New("the caller has had enough")
	for name, op := range map[string]func(context.Context) error{
		"acquire": func(ctx context.Context) error { _, err := store.Acquire(ctx, key, time.Minute); return err },
		"renew":   func(ctx context.Context) error { _, err := store.Renew(ctx, key, token, time.Minute); return err },
		"release": func(ctx context.Context) error { _, err := store.Release(ctx, key, token); return err },
		"inspect": func(ctx context.Context) error { _, err := store.Inspect(ctx, key); return err },
		"break":   func(ctx context.Context) error { _, err := store.Break(ctx, key); return err },
		"watch":   func(ctx context.Context) error { _, _, err := store.Watch(ctx, key); return err },
		"many": func(ctx context.Context) error {
			return store.RenewMany(ctx, []lockfx.Renewal{{Key: key, Token: token, TTL: time.Minute}})[0].Err
		},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		timer := time.AfterFunc(10*time.Millisecond, func() { cancel(reason) })
		begin := time.Now()
		err := op(ctx)
		took := time.Since(begin)
		timer.Stop()
		if !errors.Is(err, context.Canceled) || !errors.Is(err, reason) {
			t.Errorf("%s: %v; want the end of the context and its cause", name, err)
		}
		if took > time.Second { // the client by itself waits for 3 s and more
			t.Errorf("%s returned %v after it was called", name, took)
		}
	}
}

// While a replica is promoted or a server loads its data, it refuses to write, and
// soon will not. An undo tries for longer than that.
func TestAnUndoOutlastsARefusalThatPasses(t *testing.T) {
	e := over(t, single(t))
	s, server := e.store(t), direct(t, e)
	warm(t, s)
	admin := e.servers[0].Client()
	defer admin.Close() //nolint:errcheck // a test
	heal, _ := e.inflict(proxy.LoseReplies)
	ctx, cancel := context.WithCancel(t.Context())
	acquire := call(func() (lockfx.Grant, error) { return s.Acquire(ctx, key, time.Hour) })
	eventually(t, "the acquisition reaches the server", func() bool { return lease(t, server).Token != 0 })
	if err := admin.Do(t.Context(), "config", "set", "replica-priority", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := admin.ReplicaOf(t.Context(), "127.0.0.1", "1").Err(); err != nil { // there is nobody
		t.Fatal(err)
	}
	heal()
	cancel()
	<-acquire
	time.Sleep(2500 * time.Millisecond) // longer than the client itself tries
	if err := admin.ReplicaOf(t.Context(), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the lease is undone", func() bool { return lease(t, server).Token == 0 })
}

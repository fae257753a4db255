package etcd_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/etcdstore"
	"github.com/lockfx/lockfx/integration/etcdserver"
)

// secured makes the cluster ask for a password, and returns a client of its
// administrator, and a store of a user who may do all with what begins with the prefix.
func (e *engine) secured(t *testing.T) (admin *clientv3.Client, s *etcdstore.Store, w *wire) {
	t.Helper()
	raw := e.raw(t)
	must(t, func() error { _, err := raw.UserAdd(t.Context(), "root", "secret"); return err })
	must(t, func() error { _, err := raw.UserGrantRole(t.Context(), "root", "root"); return err })
	must(t, func() error { _, err := raw.RoleAdd(t.Context(), "locker"); return err })
	must(t, func() error {
		end := clientv3.GetPrefixRangeEnd(e.prefix)
		_, err := raw.RoleGrantPermission(t.Context(), "locker", e.prefix, end, clientv3.PermissionType(clientv3.PermReadWrite))
		return err
	})
	must(t, func() error { _, err := raw.UserAdd(t.Context(), "app", "secret"); return err })
	must(t, func() error { _, err := raw.UserGrantRole(t.Context(), "app", "locker"); return err })
	must(t, func() error { _, err := raw.AuthEnable(t.Context()); return err })
	admin, _ = e.user(t, "root")
	client, w := e.user(t, "app")
	s, err := e.over(client)
	if err != nil {
		t.Fatal(err)
	}
	return admin, s, w
}

func must(t *testing.T, step func() error) {
	t.Helper()
	if err := step(); err != nil {
		t.Fatal(err)
	}
}

// user returns a client of a user, whose requests are seen.
func (e *engine) user(t *testing.T, name string) (*clientv3.Client, *wire) {
	t.Helper()
	w := &wire{}
	client, err := w.dial(clientv3.Config{Endpoints: e.cluster.Addrs(), Username: name, Password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	e.opened = append(e.opened, func() { _ = client.Close() })
	return client, w
}

// A user who may read and write what begins with the prefix can do everything, and
// no more.
func TestARoleOnThePrefixIsEnough(t *testing.T) {
	e := one(t)
	_, s, w := e.secured(t)
	watched(t, s, key)
	token := granted(t, s, key, time.Minute)
	refused(t, s, key)
	renew(t, s, key, token, time.Minute, true)
	renew(t, s, key, token, time.Hour, true)
	if held, err := s.Inspect(t.Context(), key); err != nil || held.Token != token {
		t.Errorf("%+v, %v; want token %v", held, err, token)
	}
	release(t, s, key, token, true)
	granted(t, s, key, time.Minute)
	if ok, err := s.Break(t.Context(), key); !ok || err != nil {
		t.Error(ok, err)
	}

	// Checking a password takes etcd longer than all the rest.
	seen := w.counted(func() {
		for range 10 {
			token := granted(t, s, key, time.Minute)
			renew(t, s, key, token, time.Minute, true)
			release(t, s, key, token, true)
		}
	})
	if seen["LeaseKeepAlive"] < 10 || seen["Authenticate"] > 0 {
		t.Errorf("%v; want no authentication for a request", seen)
	}

	client, _ := e.user(t, "app")
	stranger, err := etcdstore.New(client, etcdstore.WithPrefix("elsewhere/"))
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if g, err := stranger.Acquire(t.Context(), key, time.Minute); g.OK || err == nil || time.Since(begin) > 4*time.Second {
		t.Errorf("without the right: %+v, %v after %v; want an error at once", g, err, time.Since(begin))
	}
	closed(t, stranger)
}

// Each way in which the token that a client has got is no longer good.
var staleTokens = map[string]struct {
	settings []etcdserver.Setting
	spoil    func(t *testing.T, admin *clientv3.Client) error
}{
	"the password was set again": {spoil: func(t *testing.T, admin *clientv3.Client) error {
		_, err := admin.UserChangePassword(t.Context(), "app", "secret")
		return err
	}},
	"it has expired": {
		settings: []etcdserver.Setting{etcdserver.AuthToken("simple", time.Second)},
		spoil:    func(*testing.T, *clientv3.Client) error { time.Sleep(2500 * time.Millisecond); return nil }, // etcd looks once a second
	},
	"rights were changed, and it says of which state it is": {
		settings: []etcdserver.Setting{etcdserver.AuthToken("jwt,sign-method=HS256,priv-key="+jwtKey(), time.Minute)},
		spoil: func(t *testing.T, admin *clientv3.Client) error {
			_, err := admin.RoleAdd(t.Context(), rand.Text())
			return err
		},
	},
	"authentication was enabled just now": {spoil: func(t *testing.T, admin *clientv3.Client) error {
		_, off := admin.AuthDisable(t.Context())
		_, used := admin.Get(t.Context(), "x")
		_, on := admin.AuthEnable(t.Context())
		return errors.Join(off, used, on)
	}},
}

// jwtKey returns the path of a key for tokens that carry what they say. It lasts for as
// long as the tests.
var jwtKey = sync.OnceValue(func() string {
	f, err := os.CreateTemp("", "jwt")
	if err == nil {
		_, err = f.WriteString(rand.Text())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		panic(err)
	}
	return f.Name()
})

func TestAHoldOutlivesTheTokenOfItsClient(t *testing.T) {
	for name, stale := range staleTokens {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := on(t, start(t, 1, etcdserver.Quick, stale.settings...))
			admin, s, w := e.secured(t)
			spoilt := func(what string, do func()) {
				t.Helper()
				if err := stale.spoil(t, admin); err != nil {
					t.Fatal(what, err)
				}
				do()
			}
			var token lockfx.Token
			freed := watched(t, s, key)
			spoilt("acquire", func() { token = granted(t, s, key, time.Hour) })
			spoilt("renew", func() { renew(t, s, key, token, time.Hour, true) })
			spoilt("renew again", func() { renew(t, s, key, token, time.Hour, true) })
			spoilt("renew for another time", func() { renew(t, s, key, token, 2*time.Hour, true) })
			spoilt("acquire what is held", func() { refused(t, s, key) })
			spoilt("acquire what is held, with the lease of last time", func() { refused(t, s, key) })
			spoilt("inspect", func() {
				if held, err := s.Inspect(t.Context(), key); err != nil || held.Token != token {
					t.Errorf("inspect: %+v, %v", held, err)
				}
			})
			spoilt("watch beside the first", func() { watched(t, s, key) })
			spoilt("release", func() { release(t, s, key, token, true) })
			wakes(t, freed)
			spoilt("acquire with the lease of last time", func() { token = granted(t, s, key, time.Hour) })
			spoilt("break", func() {
				if ok, err := s.Break(t.Context(), key); !ok || err != nil {
					t.Errorf("break: %v, %v", ok, err)
				}
			})
			spoilt("give up", func() {
				ctx, cancel := context.WithCancel(t.Context())
				w.through(func(ctx context.Context, method string, send func(context.Context) error) error {
					err := send(ctx)
					if method == "Txn" && err == nil { // the answer is lost
						w.through(nil)
						must(t, func() error { return stale.spoil(t, admin) })
						cancel()
						err = context.Canceled
					}
					return err
				})
				if g, err := s.Acquire(ctx, key, time.Hour); g.OK || !errors.Is(err, context.Canceled) {
					t.Fatalf("%+v, %v; want the end of the context", g, err)
				}
				closed(t, s)
				if n := records(t, admin, e.prefix); n != 0 {
					t.Errorf("%d records, want none", n)
				}
			})
		})
	}
}

// The application watches too, over a stream that was opened with an old token.
func TestAWatchDoesNotDependOnTheStreamsOfTheApplication(t *testing.T) {
	e := one(t)
	admin, _, _ := e.secured(t)
	client, _ := e.user(t, "app")
	s, err := e.over(client)
	if err != nil {
		t.Fatal(err)
	}
	<-client.Watch(clientv3.WithRequireLeader(t.Context()), e.prefix, clientv3.WithCreatedNotify())
	must(t, func() error { return staleTokens["the password was set again"].spoil(t, admin) })
	freed := watched(t, s, key)
	release(t, s, key, granted(t, s, key, time.Hour), true)
	wakes(t, freed)
}

// A password that is wrong by now is told at once.
func TestAPasswordThatWasChangedIsAnErrorAtOnce(t *testing.T) {
	e := one(t)
	admin, s, _ := e.secured(t)
	token := granted(t, s, key, time.Hour)
	must(t, func() error { _, err := admin.UserChangePassword(t.Context(), "app", "another"); return err })
	for op, call := range map[string]func() (bool, error){
		"acquire": func() (bool, error) { g, err := s.Acquire(t.Context(), "free", time.Hour); return g.OK, err },
		"renew":   func() (bool, error) { return s.Renew(t.Context(), key, token, time.Hour) },
		"release": func() (bool, error) { return s.Release(t.Context(), key, token) },
		"break":   func() (bool, error) { return s.Break(t.Context(), key) },
		"inspect": func() (bool, error) { l, err := s.Inspect(t.Context(), key); return l.Token != 0, err },
		"watch": func() (bool, error) {
			_, stop, err := s.Watch(t.Context(), key)
			if err == nil {
				stop()
			}
			return err == nil, err
		},
	} {
		begin := time.Now()
		if ok, err := call(); ok || !errors.Is(err, lockfx.ErrStore) || !strings.Contains(err.Error(), "authentication failed") || time.Since(begin) > 4*time.Second {
			t.Errorf("%s: %v, %v after %v; want an error at once", op, ok, err, time.Since(begin))
		}
	}
}

package etcd_test

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockfx/lockfx/etcdstore"
)

// A user who may read and write what begins with the prefix can do everything, and
// no more.
func TestARoleOnThePrefixIsEnough(t *testing.T) {
	e := one(t)
	raw := e.raw(t)
	for _, step := range []func() error{
		func() error { _, err := raw.UserAdd(t.Context(), "root", "secret"); return err },
		func() error { _, err := raw.UserGrantRole(t.Context(), "root", "root"); return err },
		func() error { _, err := raw.RoleAdd(t.Context(), "locker"); return err },
		func() error {
			end := clientv3.GetPrefixRangeEnd(e.prefix)
			_, err := raw.RoleGrantPermission(t.Context(), "locker", e.prefix, end, clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := raw.UserAdd(t.Context(), "app", "secret"); return err },
		func() error { _, err := raw.UserGrantRole(t.Context(), "app", "locker"); return err },
		func() error { _, err := raw.AuthEnable(t.Context()); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	w := &wire{}
	client, err := w.dial(clientv3.Config{Endpoints: e.cluster.Addrs(), Username: "app", Password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	e.opened = append(e.opened, func() { _ = client.Close() })
	s, err := e.over(client)
	if err != nil {
		t.Fatal(err)
	}
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

package lifecycle_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

func TestAConfigurationNamesAllOfItsFaults(t *testing.T) {
	good := func() lifecycle.Config { return lifecycle.Config{Key: key, Store: &script{}, TTL: ttl} }
	for _, tt := range []struct {
		name   string
		change func(*lifecycle.Config)
		want   []string
	}{
		{"none", func(*lifecycle.Config) {}, nil},
		{"half the ttl", func(c *lifecycle.Config) { c.Heartbeat = ttl / 2 }, nil},
		{"longest ttl", func(c *lifecycle.Config) { c.TTL = math.MaxInt64 }, nil},
		{"shortest ttl", func(c *lifecycle.Config) { c.TTL, c.Heartbeat = 2, 1 }, nil},
		{"more than half", func(c *lifecycle.Config) { c.Heartbeat = ttl/2 + 1 }, []string{"heartbeat 15.000000001s must be at most half the ttl of 30s"}},
		{"absurd heartbeat", func(c *lifecycle.Config) { c.Heartbeat = math.MaxInt64 }, []string{"heartbeat 2562047h47m16.854775807s must be at most half the ttl of 30s"}},
		{"negative heartbeat", func(c *lifecycle.Config) { c.Heartbeat = -1 }, []string{"heartbeat -1ns must be greater than 0"}},
		{"no room for a heartbeat", func(c *lifecycle.Config) { c.TTL = 1 }, []string{"heartbeat 0s must be greater than 0"}},
		{"negative release timeout", func(c *lifecycle.Config) { c.ReleaseTimeout = -time.Second }, []string{"release timeout -1s must be greater than 0"}},
		{"nil observer", func(c *lifecycle.Config) { c.Observers = []func(lockfx.Event){func(lockfx.Event) {}, nil} }, []string{"observer 2 of 2 is nil"}},
		{"nothing", func(c *lifecycle.Config) { *c = lifecycle.Config{} }, []string{`key "" must not be empty`, "ttl 0s must be greater than 0", "store is nil"}},
		{"several", func(c *lifecycle.Config) {
			*c = lifecycle.Config{Key: "a\x00", TTL: ttl, Heartbeat: ttl, ReleaseTimeout: -1}
		}, []string{`key "a\x00" must not contain NUL`, "store is nil", "heartbeat 30s must be at most half the ttl of 30s", "release timeout -1ns must be greater than 0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := good()
			tt.change(&c)
			m, err := lifecycle.New(c)
			if tt.want == nil {
				if m == nil || err != nil {
					t.Errorf("New = %v, %v", m, err)
				}
				return
			}
			if m != nil || !errors.Is(err, lockfx.ErrConfig) {
				t.Fatalf("New = %v, %v", m, err)
			}
			if n := strings.Count(err.Error(), "\n") + 1; n != len(tt.want) {
				t.Errorf("%d faults, want %d: %v", n, len(tt.want), err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), lockfx.ErrConfig.Error()+": "+want) {
					t.Errorf("%v\ndoes not say: %s", err, want)
				}
			}
		})
	}
}

// What is left out of a configuration is chosen here.
func TestDefaults(t *testing.T) {
	lock, err := lifecycle.New(lifecycle.Config{Key: key, Store: &script{}, TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	if lock.State() != lockfx.StateIdle || lock.Held() || lock.Token() != 0 || lock.Last() != 0 || lock.Disposed() {
		t.Errorf("a new lock: %v, held %v, token %v", lock.State(), lock.Held(), lock.Token())
	}
	inBubble(t, func(t *testing.T, r *rig) {
		r.acquire(t)
		if e := r.seen.all()[0]; e.Lock != key {
			t.Errorf("the name is %q, want the key", e.Lock)
		}
		time.Sleep(ttl/3 - 1)
		r.wantCalls(t, "acquire")
		time.Sleep(2 * time.Nanosecond)
		r.wantCalls(t, "acquire", "renew 1")
		r.store.releases(never)
		asked := time.Now()
		if ok, err := r.Release(background); ok || err == nil || time.Since(asked) != 5*time.Second {
			t.Errorf("Release = %v, %v after %v", ok, err, time.Since(asked))
		}
	})
	inBubble(t, func(t *testing.T, r *rig) {
		r.acquire(t)
		r.store.releases(never)
		asked := time.Now()
		if ok, err := r.Release(background); ok || err == nil || time.Since(asked) != time.Second {
			t.Errorf("with a ttl of 1 s: Release = %v, %v after %v", ok, err, time.Since(asked))
		}
	}, func(c *lifecycle.Config) { c.TTL = time.Second })
}

// Nobody listens: nothing is kept for them.
func TestALockThatNobodyObserves(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.acquire(t)
		r.lose()
		r.wantState(t, lockfx.StateLost)
		r.dispose(t)
		r.wantEvents(t, "")
	}, func(c *lifecycle.Config) { c.OnLost, c.Observers = nil, nil })
}

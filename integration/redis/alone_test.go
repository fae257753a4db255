package redis_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/redisstore"
)

// Among renewals that go together, one whose record or key is at fault fails alone.
func TestARenewalFailsAlone(t *testing.T) {
	const locks, bad = 250, 137
	for name, spoil := range map[string]func(t *testing.T, admin *redis.Client, record string){
		"foreign type": func(t *testing.T, admin *redis.Client, record string) {
			t.Helper()
			if err := admin.Set(t.Context(), record, "somebody's", 0).Err(); err != nil {
				t.Fatal(err)
			}
		},
		"foreign field": func(t *testing.T, admin *redis.Client, record string) {
			t.Helper()
			if err := admin.HSet(t.Context(), record, "since", "noon").Err(); err != nil {
				t.Fatal(err)
			}
		},
		"forbidden key": func(t *testing.T, admin *redis.Client, record string) {
			t.Helper()
			others := strings.TrimSuffix(record, strconv.Itoa(bad)+"}") // a pattern can't say "all but"
			rules := []any{"acl", "setuser", "default", "resetkeys"}
			for i := range locks {
				if i != bad {
					rules = append(rules, fmt.Sprintf("~%s%d}", others, i))
				}
			}
			if err := admin.Do(t.Context(), rules...).Err(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := over(t, single(t))
			s := e.store(t)
			admin := e.servers[0].Client()
			defer admin.Close() //nolint:errcheck // a test
			renewals := make([]lockfx.Renewal, locks)
			for i := range renewals {
				k := strconv.Itoa(i)
				g, err := s.Acquire(t.Context(), k, time.Minute)
				if err != nil || !g.OK {
					t.Fatal(g, err)
				}
				renewals[i] = lockfx.Renewal{Key: k, Token: g.Token, TTL: time.Hour}
			}
			spoil(t, admin, e.recordOf(strconv.Itoa(bad)))
			failAlone(t, "renew many", bad, s.RenewMany(t.Context(), renewals))
			failAlone(t, "renew", bad, atOnce(t, s, renewals))
		})
	}
}

// atOnce renews as the heartbeats of as many locks do.
func atOnce(t *testing.T, s *redisstore.Store, renewals []lockfx.Renewal) []lockfx.Result {
	t.Helper()
	results := make([]lockfx.Result, len(renewals))
	var all sync.WaitGroup
	for i, r := range renewals {
		all.Go(func() { results[i].OK, results[i].Err = s.Renew(t.Context(), r.Key, r.Token, r.TTL) })
	}
	all.Wait()
	return results
}

func failAlone(t *testing.T, op string, bad int, results []lockfx.Result) {
	t.Helper()
	failed := 0
	for i, r := range results {
		switch {
		case i == bad:
			if r.OK || !errors.Is(r.Err, lockfx.ErrStore) {
				t.Errorf("%s: the one at fault: %+v; want an error of the store", op, r)
			}
		case !r.OK || r.Err != nil:
			failed++
		}
	}
	if failed > 0 {
		t.Errorf("%s: %d others failed too", op, failed)
	}
}

package etcdstore

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockfx/lockfx"
)

func TestOptionsPrintThemselvesAsWritten(t *testing.T) {
	for want, opt := range map[string]Option{
		`etcdstore.WithPrefix("app/")`: WithPrefix("app/"),
		`etcdstore.WithPool(3)`:        WithPool(3),
	} {
		if opt.String() != want {
			t.Errorf("%s, want %s", opt, want)
		}
	}
}

func TestNewReportsAllFaultsAtOnce(t *testing.T) {
	_, err := New(nil, WithPrefix("app"), nil, WithPool(0), WithPool(1001), WithPrefix("\xff/"), WithPrefix(strings.Repeat("p", 128)+"/"))
	if !errors.Is(err, lockfx.ErrConfig) {
		t.Fatalf("%v, want lockfx.ErrConfig", err)
	}
	for _, want := range []string{
		`WithPrefix("app"): must end with a slash`, "option 2 is nil", "WithPool(0): must be 1 to 1000",
		"WithPool(1001): must be 1 to 1000", `WithPrefix("\xff/"): must be UTF-8`, "has 129 bytes",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %q", err, want)
		}
	}
}

func TestNewRefusesAClientWithoutAConnection(t *testing.T) {
	for _, client := range []*clientv3.Client{nil, clientv3.NewCtxClient(t.Context())} {
		if _, err := From(client); !errors.Is(err, lockfx.ErrConfig) {
			t.Errorf("%v, want lockfx.ErrConfig", err)
		}
	}
}

func TestTTLIsRoundedUpAndBounded(t *testing.T) {
	for ttl, want := range map[time.Duration]int64{
		time.Second: 1, time.Second + 1: 2, 1500 * time.Millisecond: 2, 2 * time.Second: 2, longest: 9_000_000_000,
	} {
		if err := checkTTL(ttl); err != nil {
			t.Errorf("ttl %v: %v", ttl, err)
		}
		if got := secondsOf(ttl); got != want {
			t.Errorf("ttl %v: %d s, want %d", ttl, got, want)
		}
	}
	for _, ttl := range []time.Duration{time.Second - 1, 0, -1, longest + 1, math.MaxInt64} {
		if err := checkTTL(ttl); !errors.Is(err, lockfx.ErrConfig) {
			t.Errorf("ttl %v: %v, want lockfx.ErrConfig", ttl, err)
		}
	}
}

func TestNamesNeverMeet(t *testing.T) {
	seen := map[string]string{}
	for _, prefix := range []string{"a/", "a/b/", "/", "a%2F/"} {
		for _, key := range []string{"b", "b/c", "c", "/", "//", "%", "%2F", "%252F", "b/", "/b"} {
			name := nameOf(prefix, key)
			if was, ok := seen[name]; ok {
				t.Errorf("%s and %s are both %s", was, prefix+" "+key, name)
			}
			seen[name] = prefix + " " + key
		}
	}
}

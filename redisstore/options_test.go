package redisstore

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfx/lockfx"
)

func TestOptionsPrintAsWritten(t *testing.T) {
	for want, opt := range map[string]Option{
		`redisstore.WithPrefix("a\"b:")`: WithPrefix(`a"b:`),
		`redisstore.WithMemory(1h0m0s)`:  WithMemory(time.Hour),
	} {
		if got := opt.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestAllFaultsAreToldAtOnce(t *testing.T) {
	_, err := New(nil, WithPrefix(""), nil, WithMemory(-time.Hour))
	if !errors.Is(err, lockfx.ErrConfig) {
		t.Fatalf("%v, want an error that matches lockfx.ErrConfig", err)
	}
	for _, part := range []string{
		`redisstore.WithPrefix(""): must not be empty`, "option 2 is nil",
		"redisstore.WithMemory(-1h0m0s): must be at least 1s", "the client must not be nil",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v: says nothing of %q", err, part)
		}
	}
}

func TestEachBadOptionIsRefused(t *testing.T) {
	client := redis.NewClient(&redis.Options{})
	defer client.Close() //nolint:errcheck // it was never used
	for _, opt := range []Option{
		WithPrefix(""), WithPrefix("{a}"), WithPrefix("a{"), WithPrefix("a}"), WithPrefix("a\x00"), WithPrefix("\xff"),
		WithPrefix(strings.Repeat("a", 129)), WithMemory(0), WithMemory(time.Second - 1),
	} {
		if s, err := New(client, opt); s != nil || !errors.Is(err, lockfx.ErrConfig) || !strings.Contains(err.Error(), opt.String()+": ") {
			t.Errorf("%v: %v, want an error that names the option", opt, err)
		}
	}
	if _, err := New(client, WithPrefix(strings.Repeat("é", 64)), WithMemory(time.Second)); err != nil {
		t.Error(err)
	}
}

func TestClientsThatCannotExcludeAreRefused(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{})
	defer ring.Close() //nolint:errcheck // it was never used
	for name, client := range map[string]redis.UniversalClient{
		"nil": nil, "a nil *redis.Client": (*redis.Client)(nil), "a nil *redis.ClusterClient": (*redis.ClusterClient)(nil), "a ring": ring,
	} {
		if s, err := New(client); s != nil || !errors.Is(err, lockfx.ErrConfig) {
			t.Errorf("%s: %v, %v; want an error that matches lockfx.ErrConfig", name, s, err)
		}
	}
	if s, err := From((*redis.Client)(nil)); s != nil || err == nil {
		t.Errorf("From: %v, %v", s, err)
	}
}

func TestNothingIsSentByNew(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "192.0.2.1:1"}) // nobody's, by RFC 5737
	defer client.Close()                                           //nolint:errcheck // it was never used
	s, err := From(client)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

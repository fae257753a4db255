package fxlock_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// everyOption is a configuration that sets every field, as a file gives it.
func everyOption() map[string]any {
	return map[string]any{
		"key": "k", "ttl": "1m", "heartbeat": "20s", "release_timeout": "1s", "teardown_timeout": "2s",
		"call_timeout": "3s", "wait": "4s", "min_hold": "5s", "max_hold": "6s",
		"renew_retry": true, "token_name": "t", "holder_name": "h", "label": "l", "named": true, "private": true,
	}
}

func TestDecodeConfig_ReadsEveryOption(t *testing.T) {
	got, err := fxlock.DecodeConfig(everyOption())
	must(t, err)
	want := fxlock.Config{
		Key: "k", TTL: time.Minute, Heartbeat: 20 * time.Second, ReleaseTimeout: time.Second, TeardownTimeout: 2 * time.Second,
		CallTimeout: 3 * time.Second, Wait: 4 * time.Second, MinHold: 5 * time.Second, MaxHold: 6 * time.Second,
		RenewRetry: true, TokenName: "t", HolderName: "h", Label: "l", Named: true, Private: true,
	}
	if got.String() != want.String() {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if n := reflect.TypeFor[fxlock.Config]().NumField() - 1; n != len(everyOption()) {
		t.Errorf("a Config has %d fields, this test knows %d", n, len(everyOption()))
	}
	none, err := fxlock.DecodeConfig(nil)
	if none != (fxlock.Config{}) || err != nil {
		t.Errorf("nothing gives %+v, %v", none, err)
	}
	typed, err := fxlock.DecodeConfig(map[string]any{"ttl": time.Minute, "named": false})
	if typed.String() != "fxlock.Config{TTL: 1m0s, Named: false}" || err != nil {
		t.Errorf("a time.Duration gives %+v, %v", typed, err)
	}
}

// A Config does what the options of the same names do.
func TestConfig_DoesWhatItsOptionsDo(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var j journal
		store := newSpyStore(&j)
		lock := newLock(t, store, fxlock.Config{
			Key: "other", TTL: time.Minute, Heartbeat: 30 * time.Second, ReleaseTimeout: time.Second, TeardownTimeout: 2 * time.Second,
			RenewRetry: true, TokenName: "t", HolderName: "h", Label: "l",
		})
		var renewals atomic.Int32
		store.renew = func() error {
			if renewals.Add(1) == 1 {
				return errBody // tried again
			}
			return nil
		}
		must(t, lock.Run(t.Context(), func(s *fxlock.Scope, h lockfx.Holder) {
			if _, err := fxlock.Get[lockfx.Token](s, "t"); err != nil {
				t.Error(err)
			}
			if _, err := fxlock.Get[lockfx.Holder](s, "h"); err != nil {
				t.Error(err)
			}
			if left := time.Until(h.Deadline()); left < 59*time.Second || left > time.Minute {
				t.Errorf("the lease lasts %v", left)
			}
			time.Sleep(30*time.Second - 1)
			if renewals.Load() != 0 {
				t.Error("it was renewed early")
			}
			time.Sleep(20 * time.Second)
		}))
		if lock.Key() != "other" || store.labels[0] != "l" || renewals.Load() != 2 {
			t.Errorf("key %q, label %q, %d renewals", lock.Key(), store.labels[0], renewals.Load())
		}
	})
}

func TestConfig_BoundsWaitingAndHolding(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var limits []time.Duration // of the requests
		store := newInterceptedStore(func(ctx context.Context, request string) error {
			if request == "acquire" {
				end, _ := ctx.Deadline()
				limits = append(limits, time.Until(end))
			}
			return nil
		})
		lock := newLock(t, store, fxlock.Config{
			CallTimeout: 3 * time.Second, Wait: time.Minute, MinHold: 10 * time.Second, MaxHold: 20 * time.Second,
		})
		must(t, lock.Run(t.Context(), func() {}))
		if limits[0] != 3*time.Second {
			t.Errorf("a call may take %v", limits[0])
		}
		began := time.Now()
		err := lock.Run(t.Context(), func(ctx context.Context) {
			if waited := time.Since(began); waited < 10*time.Second || waited > 11*time.Second {
				t.Errorf("it waited %v", waited)
			}
			began = time.Now()
			<-ctx.Done()
		})
		var lost *lockfx.LostError
		if held := time.Since(began); !errors.As(err, &lost) || lost.Reason != lockfx.ReasonMaxHold || held != 20*time.Second {
			t.Errorf("it ended after %v: %v", held, err)
		}
	})
}

func TestDecodeConfig_ReportsAllFaultsAtOnce(t *testing.T) {
	c, err := fxlock.DecodeConfig(map[string]any{
		"kee": "k", "TTL": "1m", "time_to_live": "1m", "heart-beat": "1s", "nmaed": true,
		"key": "", "ttl": 30, "heartbeat": "-1s", "release_timeout": "soon", "teardown_timeout": "0s", "renew_retry": "yes",
		"token_name": nil, "holder_name": "lock:fence", "label": 7, "named": 1, "private": []string{"a"},
	})
	if c != (fxlock.Config{}) {
		t.Errorf("a faulty configuration gives %+v", c)
	}
	wantIs(t, err, lockfx.ErrConfig)
	wantText(t, err,
		`option "kee": is unknown; did you mean "key"?`,
		`option "TTL": is unknown; did you mean "ttl"?`,
		`option "time_to_live": is unknown; known are key, ttl, heartbeat, `,
		`option "heart-beat": is unknown; did you mean "heartbeat"?`,
		`option "nmaed": is unknown; did you mean "named"?`,
		`key "" must not be empty`,
		`option "ttl": 30 (int): must be a duration with a unit, such as "30s"`,
		"fxlock.WithHeartbeat(-1s): must be greater than 0",
		`option "release_timeout": soon (string): must be a duration with a unit`,
		"fxlock.WithTeardownTimeout(0s): must be greater than 0",
		`option "renew_retry": yes (string): must be a bool`,
		`option "token_name": nil: must be a string`,
		"the token and the holder need different names",
		`option "label": 7 (int): must be a string`,
		`option "named": 1 (int): must be a bool`,
		`option "private": [a] ([]string): must be a bool`,
	)
	_, err = fxlock.DecodeConfig(map[string]any{"ttl": "10s", "heartbeat": "6s", "key": strings.Repeat("k", 513)})
	wantText(t, err, "heartbeat 6s must be at most half the ttl of 10s", "has 513 bytes; at most 512 are allowed")
}

// What a file says wins over the code, also when it turns something off. What goes with
// a ttl that only the code knows is left to the module.
func TestDecodeConfig_KeepsWhatIsWritten(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, err := fxlock.DecodeConfig(map[string]any{
			"heartbeat": "20s", "wait": "0s", "renew_retry": false, "min_hold": "0s", "max_hold": "0s", "call_timeout": "0s", "label": "",
		})
		must(t, err)
		store := newSpyStore(new(journal))
		store.renew = func() error { return errBody }
		lock := newLock(t, store, fxlock.WithTTL(time.Minute), fxlock.WaitForever(), fxlock.WithRenewRetry(), fxlock.MinHold(time.Hour),
			fxlock.MaxHold(2*time.Hour), fxlock.WithCallTimeout(time.Second), fxlock.WithLabel("code"), c)
		wantIs(t, lock.Do(t.Context(), func(ctx context.Context, _ lockfx.Holder) error {
			wantIs(t, lock.Do(t.Context(), workNothing), lockfx.ErrNotAcquired) // it does not wait
			<-ctx.Done()                                                        // the first renewal that fails is the last one
			return nil
		}), lockfx.ErrLost)
		if store.labels[0] == "code" {
			t.Error("the label of the code was kept")
		}
		c, err = fxlock.DecodeConfig(map[string]any{"wait": "forever"})
		if must(t, err); c.Wait != fxlock.Forever || c.String() != "fxlock.Config{Wait: fxlock.Forever}" {
			t.Errorf("for ever is %v", c)
		}
		wantText(t, newErr(fxlock.Module(key, memory(), fxlock.Config{Heartbeat: 20 * time.Second})),
			"heartbeat 20s must be at most half the ttl of 30s")
	})
}

// Whatever a file holds is decoded or refused, and what was decoded is sound.
func FuzzDecodeConfig(f *testing.F) {
	every, err := json.Marshal(everyOption())
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		string(every), `{}`, `null`, `{"ttl":30}`, `{"ttl":"30"}`, `{"ttl":null}`, `{"ttl":{"s":1}}`, `{"key":["a"]}`, `{"":1}`,
		`{"heartbeat":"20s"}`, `{"named":"true","nmaed":false}`, `{"ttl":"9223372036854775807ns","heartbeat":"4611686018427387903ns"}`,
		`{"key":"\u0000"}`, `{"ttl":"1ns"}`, `{"ttl":1e300}`, `{"label":true}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var from map[string]any
		if json.Unmarshal(data, &from) != nil {
			return
		}
		c, err := fxlock.DecodeConfig(from)
		if err != nil {
			if !errors.Is(err, lockfx.ErrConfig) || c != (fxlock.Config{}) {
				t.Errorf("%v, and %+v", err, c)
			}
			return
		}
		err = fxlock.Validate(fxlock.Module(key, memory(), fxlock.WithTTL(math.MaxInt64/2), c))
		if err != nil {
			t.Errorf("%s was decoded to %+v, which is refused: %v", data, c, err)
		}
	})
}

// Every key that a store takes can be the name of a lock and of all that it binds.
func FuzzKey(f *testing.F) {
	for _, seed := range []string{"nightly", `"`, "`", `\`, "a,b", "a b", "\t\n", "ключ", "\u202e", "name:\"x\"", "\x7f", strings.Repeat("é", 256)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if lockfx.CheckKey(name) != nil {
			wantIs(t, newErr(fxlock.Module(name, memory())), lockfx.ErrConfig)
			return
		}
		checkName(t, name)
	})
}

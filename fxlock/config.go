package fxlock

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/lockfx/lockfx/fxlock/internal/faults"
	"github.com/lockfx/lockfx/fxlock/internal/mapdecode"
	"github.com/lockfx/lockfx/internal/queue"
)

// Config is what a program may load from a file or its environment. It is an [Option]: each
// field that is set acts as the option of its name, which documents the rule. A zero field
// leaves what other options set, or the default. [DecodeConfig] also keeps a zero that the
// map contains.
type Config struct {
	Key             string        `mapstructure:"key"`
	TTL             time.Duration `mapstructure:"ttl"`
	Heartbeat       time.Duration `mapstructure:"heartbeat"`
	CallTimeout     time.Duration `mapstructure:"call_timeout"`
	Wait            time.Duration `mapstructure:"wait"`
	MinHold         time.Duration `mapstructure:"min_hold"`
	MaxHold         time.Duration `mapstructure:"max_hold"`
	ReleaseTimeout  time.Duration `mapstructure:"release_timeout"`
	TeardownTimeout time.Duration `mapstructure:"teardown_timeout"`
	RenewRetry      bool          `mapstructure:"renew_retry"`
	TokenName       string        `mapstructure:"token_name"`
	HolderName      string        `mapstructure:"holder_name"`
	Label           string        `mapstructure:"label"`
	Named           bool          `mapstructure:"named"`
	Private         bool          `mapstructure:"private"`

	written uint32 // the fields that were written, also as zero: a bit for each
}

const configFields = 15 // but for written

// Forever is a Config.Wait without a limit; see [WaitForever].
const Forever = queue.Forever

// wrote reports whether field i is set, or was written.
func (c Config) wrote(i int) bool {
	return c.written&(1<<i) != 0 || !reflect.ValueOf(c).Field(i).IsZero()
}

// applyLock applies each field of c that is set as the option of its name does.
func (c Config) applyLock(s *settings) {
	for i, o := range c.options() {
		if c.wrote(i) {
			o.applyLock(s)
		}
	}
}

// String returns c as it is written, without the fields that are not set.
func (c Config) String() string {
	var fields []string
	v := reflect.ValueOf(c)
	for i := range configFields {
		switch name, f := v.Type().Field(i).Name, v.Field(i); {
		case !c.wrote(i):
		case f.Kind() == reflect.String:
			fields = append(fields, fmt.Sprintf("%s: %q", name, f))
		case f.Interface() == Forever:
			fields = append(fields, name+": fxlock.Forever")
		default:
			fields = append(fields, fmt.Sprintf("%s: %v", name, f))
		}
	}
	return "fxlock.Config{" + strings.Join(fields, ", ") + "}"
}

// options returns the option of each field, in the order of the fields. Where an option
// takes no zero although a lock can do without, the zero that was written turns it off.
func (c Config) options() [configFields]Option {
	return [...]Option{
		WithKey(c.Key),
		WithTTL(c.TTL),
		WithHeartbeat(c.Heartbeat),
		orOff(c.CallTimeout, WithCallTimeout(c.CallTimeout), func(s *settings) { s.callTimeout = 0 }),
		c.waitOption(),
		orOff(c.MinHold, MinHold(c.MinHold), func(s *settings) { s.run.minHold.set(0) }),
		orOff(c.MaxHold, MaxHold(c.MaxHold), func(s *settings) { s.run.maxHold.set(0) }),
		WithReleaseTimeout(c.ReleaseTimeout),
		WithTeardownTimeout(c.TeardownTimeout),
		option{"", func(s *settings) { s.renewRetry = c.RenewRetry }},
		WithTokenName(c.TokenName),
		WithHolderName(c.HolderName),
		WithLabel(c.Label),
		orOff(c.Named, Named(), func(s *settings) { s.named = false }),
		orOff(c.Private, Private(), func(s *settings) { s.private = false }),
	}
}

func (c Config) waitOption() Option {
	if c.Wait == Forever {
		return WaitForever()
	}
	return Wait(c.Wait)
}

// orOff returns on, or for the zero of what is set an option that unsets it.
func orOff[T comparable](set T, on Option, unset func(*settings)) Option {
	var zero T
	if set == zero {
		return option{"", unset}
	}
	return on
}

// DecodeConfig reads a Config from a map, such as the content of a YAML or JSON file.
// The names are those of the fields in snake case: key, ttl, heartbeat, call_timeout,
// wait, min_hold, max_hold, release_timeout, teardown_timeout, renew_retry, token_name,
// holder_name, label, named, private. A duration is a string with a unit, such as "30s":
// a bare number is refused. wait can also be "forever". An unknown name is an error that
// suggests a known one.
//
// A value in the map takes precedence over options before the Config, also if it is
// false, "0s" or "": wait, call_timeout, min_hold and max_hold are then off. A rule about
// two options is checked here if both are in the map, and otherwise by [Module].
//
// All faults are reported together, each matches [lockfx.ErrConfig], and the Config is
// then zero.
func DecodeConfig(from map[string]any) (Config, error) {
	var c Config
	s := settings{module: true, key: "key", ttl: unknownTTL}
	known := mapdecode.Names(reflect.TypeFor[Config]())
	for _, name := range slices.Sorted(maps.Keys(from)) {
		option := fmt.Sprintf("option %q", name)
		i := slices.Index(known, name)
		if i < 0 {
			s.fault(option, "is unknown"+mapdecode.DidYouMean(name, known))
			continue
		}
		var words map[string]time.Duration
		if name == "wait" {
			words = map[string]time.Duration{"forever": Forever}
		}
		if err := mapdecode.Set(&c, name, from[name], words); err != nil {
			s.fault(option, err.Error())
			continue
		}
		c.written |= 1 << i
	}
	_, err := newSettings(&s, []Option{c})
	if err != nil {
		return Config{}, faults.At("fxlock.DecodeConfig", err)
	}
	return c, nil
}

// unknownTTL stands for the ttl that the program sets: every heartbeat goes with it.
const unknownTTL = math.MaxInt64 / 2

package fxlock

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/lockfx/lockfx/fxlock/internal/mapdecode"
)

// DecodeConfig reads a Config from a map, such as a file of YAML or JSON gives it.
// The names are those of the fields in snake case: key, ttl, heartbeat, call_timeout,
// wait, min_hold, max_hold, release_timeout, teardown_timeout, renew_retry, token_name,
// holder_name, label, named, private. A duration is a string with a unit, such as "30s":
// a bare number is refused. wait can also be "forever". An unknown name is an error that
// suggests a known one.
//
// What is written wins over what the program sets before [WithConfig], also when it is
// false, "0s" or "": wait, call_timeout, min_hold and max_hold are then off. What must be
// right between two options is checked if both are written, and otherwise by [Module].
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
	_, err := newSettings(&s, []Option{WithConfig(c)})
	if err != nil {
		return Config{}, at("fxlock.DecodeConfig", err)
	}
	return c, nil
}

// unknownTTL stands for the ttl that the program sets: every heartbeat goes with it.
const unknownTTL = math.MaxInt64 / 2

package fxlock

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"
	"github.com/go-viper/mapstructure/v2"
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
	known := knownNames()
	for _, name := range sortedKeys(from) {
		i := slices.Index(known, name)
		if i < 0 {
			s.fault(fmt.Sprintf("option %q", name), "is unknown"+didYouMean(name, known))
			continue
		}
		if err := decodeOne(i, from[name], &c); err != nil {
			s.fault(fmt.Sprintf("option %q", name), err.Error())
		}
	}
	_, err := newSettings(&s, []Option{WithConfig(c)})
	if err != nil {
		return Config{}, at("fxlock.DecodeConfig", err)
	}
	return c, nil
}

// unknownTTL stands for the ttl that the program sets: every heartbeat goes with it.
const unknownTTL = math.MaxInt64 / 2

// decodeOne sets field number i to value.
func decodeOne(i int, value any, c *Config) error {
	name := knownNames()[i]
	if value == nil {
		return errors.New("nil: " + wants(i))
	}
	before := *c
	decoder, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		Result:     c,
		DecodeHook: durationFromString(name),
		MatchName:  func(key, field string) bool { return key == field },
	})
	if err == nil {
		err = decoder.Decode(map[string]any{name: value})
	}
	if err != nil {
		*c = before
		return fmt.Errorf("%v (%T): %s", value, value, wants(i))
	}
	c.written |= 1 << i
	return nil
}

// durationFromString reads the duration that the option called name is, and refuses a
// number, which has no unit.
func durationFromString(name string) func(from, to reflect.Type, data any) (any, error) {
	return func(from, to reflect.Type, data any) (any, error) {
		if to != reflect.TypeFor[time.Duration]() || from == to {
			return data, nil
		}
		text, ok := data.(string)
		switch {
		case !ok:
			return nil, fmt.Errorf("a bare %v has no unit", from)
		case name == "wait" && text == "forever":
			return Forever, nil
		}
		return time.ParseDuration(text)
	}
}

// wants says what a value of field number i looks like.
func wants(i int) string {
	f := reflect.TypeFor[Config]().Field(i)
	switch {
	case f.Name == "Wait":
		return `must be a duration with a unit, such as "30s", or "forever"`
	case f.Type == reflect.TypeFor[time.Duration]():
		return `must be a duration with a unit, such as "30s"`
	}
	return "must be a " + f.Type.String()
}

func knownNames() []string {
	t := reflect.TypeFor[Config]()
	names := make([]string, configFields)
	for i := range names {
		names[i] = t.Field(i).Tag.Get("mapstructure")
	}
	return names
}

// didYouMean suggests the known name that is closest to name, if one is close.
func didYouMean(name string, known []string) string {
	plain := func(s string) string {
		return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(s))
	}
	best, distance := "", len(name)/2+1
	for _, k := range known {
		if d := levenshtein.ComputeDistance(plain(name), plain(k)); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return "; known are " + strings.Join(known, ", ")
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

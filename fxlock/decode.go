package fxlock

import (
	"errors"
	"fmt"
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
// a bare number is refused. An unknown name is an error that suggests a known one. All
// faults are reported together, each matches [lockfx.ErrConfig], and the Config is then
// zero.
func DecodeConfig(from map[string]any) (Config, error) {
	var c Config
	s := settings{module: true, key: "key", ttl: defaultTTL}
	known := knownNames()
	for _, name := range sortedKeys(from) {
		if !slices.Contains(known, name) {
			s.fault(fmt.Sprintf("option %q", name), "is unknown"+didYouMean(name, known))
			continue
		}
		if err := decodeOne(name, from[name], &c); err != nil {
			s.fault(fmt.Sprintf("option %q", name), err.Error())
		}
	}
	_, err := newSettings(&s, c.options())
	if err != nil {
		return Config{}, err
	}
	return c, nil
}

// decodeOne sets the field called name to value.
func decodeOne(name string, value any, c *Config) error {
	if value == nil {
		return errors.New("nil: " + wants(name))
	}
	before := *c
	decoder, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		Result:     c,
		DecodeHook: durationFromString,
		MatchName:  func(key, field string) bool { return key == field },
	})
	if err == nil {
		err = decoder.Decode(map[string]any{name: value})
	}
	if err != nil {
		*c = before
		return fmt.Errorf("%v (%T): %s", value, value, wants(name))
	}
	if zero := *c == before; zero && reflect.TypeOf(value).Kind() != reflect.Bool {
		return fmt.Errorf("%#v must not be zero or empty; leave it out for the default", value)
	}
	return nil
}

// durationFromString refuses a number where a duration is wanted: nobody knows its
// unit.
func durationFromString(from, to reflect.Type, data any) (any, error) {
	if to != reflect.TypeFor[time.Duration]() || from == to {
		return data, nil
	}
	text, ok := data.(string)
	if !ok {
		return nil, fmt.Errorf("a bare %v has no unit", from)
	}
	return time.ParseDuration(text)
}

// wants says what a value of the field called name, which is known, looks like.
func wants(name string) string {
	t := reflect.TypeFor[Config]().Field(slices.Index(knownNames(), name)).Type
	if t == reflect.TypeFor[time.Duration]() {
		return `must be a duration with a unit, such as "30s"`
	}
	return "must be a " + t.String()
}

func knownNames() []string {
	t := reflect.TypeFor[Config]()
	names := make([]string, t.NumField())
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

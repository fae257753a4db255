// Package mapdecode reads values of a map, as files of YAML or JSON give them, into the
// fields of a struct, by the names in their tags. Durations need their unit.
package mapdecode

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/go-viper/mapstructure/v2"
)

const tag = "mapstructure"

// Names returns the names of the tagged fields of t, a struct, in order.
func Names(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		if name, ok := t.Field(i).Tag.Lookup(tag); ok {
			names = append(names, name)
		}
	}
	return names
}

// Set gives the field called name of the struct that into points to the value. words are
// durations that have a name of their own. A value that does not fit changes nothing; the
// error says what would.
func Set(into any, name string, value any, words map[string]time.Duration) error {
	target := reflect.ValueOf(into).Elem()
	var field reflect.StructField
	for i := range target.NumField() {
		if f := target.Type().Field(i); f.Tag.Get(tag) == name {
			field = f
		}
	}
	before := reflect.New(target.Type()).Elem()
	before.Set(target)
	err := errors.New("nil")
	if value != nil {
		err = decode(into, name, value, words)
	}
	if err == nil {
		return nil
	}
	target.Set(before)
	wants := "must be a " + field.Type.String()
	if field.Type == reflect.TypeFor[time.Duration]() {
		wants = `must be a duration with a unit, such as "30s"`
		for word := range words {
			wants += fmt.Sprintf(", or %q", word)
		}
	}
	if value == nil {
		return fmt.Errorf("nil: %s", wants)
	}
	return fmt.Errorf("%v (%T): %s", value, value, wants)
}

func decode(into any, name string, value any, words map[string]time.Duration) error {
	decoder, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		Result:     into,
		DecodeHook: durations(words),
		MatchName:  func(key, field string) bool { return key == field },
	})
	if err != nil {
		return err
	}
	return decoder.Decode(map[string]any{name: value})
}

// durations reads a string where a duration is wanted, and refuses a number, which has no
// unit.
func durations(words map[string]time.Duration) mapstructure.DecodeHookFuncType {
	return func(from, to reflect.Type, data any) (any, error) {
		if to != reflect.TypeFor[time.Duration]() || from == to {
			return data, nil
		}
		text, ok := data.(string)
		if !ok {
			return nil, fmt.Errorf("a bare %v has no unit", from)
		}
		if d, known := words[text]; known {
			return d, nil
		}
		return time.ParseDuration(text)
	}
}

package layered

import (
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// hashInput returns the key of a call without a key: the SHA-256, in hex, of the
// input's canonical form. That is what json.Marshal writes, which sorts the keys of
// maps. An input that json.Marshal would not write whole is refused, since different
// inputs would then share a key unseen.
func hashInput(in any) (string, error) {
	canonical, err := json.Marshal(in)
	if err != nil {
		return "", err
	}
	if err := writtenWhole(reflect.ValueOf(in), "the input"); err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}

// writtenWhole returns an error if json.Marshal leaves something of v out, or writes
// something else instead.
func writtenWhole(v reflect.Value, at string) error {
	if !v.IsValid() {
		return nil
	}
	if writesItself(v.Type()) {
		return ownWords(v, at)
	}
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return fmt.Errorf("%s is not valid UTF-8", at)
		}
	case reflect.Pointer, reflect.Interface:
		return writtenWhole(v.Elem(), at)
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil // one by one they would take long
		}
		for i := range v.Len() {
			if err := writtenWhole(v.Index(i), fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if err := writtenWhole(key, "a key of "+at); err != nil {
				return err
			}
			if err := writtenWhole(v.MapIndex(key), fmt.Sprintf("%s[%v]", at, key)); err != nil {
				return err
			}
		}
	case reflect.Struct:
		return fieldsWrittenWhole(v, at, map[string]bool{})
	}
	return nil
}

// fieldsWrittenWhole is writtenWhole for the fields of a struct. Fields that are left
// out by their tag are left out on purpose. The fields of an embedded struct go into
// the same object as those beside it; fields with one name would leave each other out
// of it. names are those that the object has already.
func fieldsWrittenWhole(v reflect.Value, at string, names map[string]bool) error {
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		tag := field.Tag.Get("json")
		if tag == "-" {
			continue
		}
		name, _, _ := strings.Cut(tag, ",")
		embedded := field.Anonymous && structure(field.Type).Kind() == reflect.Struct
		if !field.IsExported() && !embedded {
			return fmt.Errorf("%s has the unexported field %s", at, field.Name)
		}
		if embedded && name == "" {
			if value = reflect.Indirect(value); value.IsValid() {
				if err := fieldsWrittenWhole(value, at, names); err != nil {
					return err
				}
			}
			continue
		}
		if name == "" {
			name = field.Name
		}
		if names[name] {
			return fmt.Errorf("%s has two fields that JSON calls %s", at, name)
		}
		names[name] = true
		if err := writtenWhole(value, at+"."+field.Name); err != nil {
			return err
		}
	}
	return nil
}

// structure returns t, or what it points to.
func structure(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// writesItself reports whether json.Marshal asks the type itself what to write.
func writesItself(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

// ownWords returns an error if v, which writes itself, has that from what it embeds,
// such as a time.Time: that writes itself, and none of the fields beside it.
func ownWords(v reflect.Value, at string) error {
	v = reflect.Indirect(v)
	if v.Kind() != reflect.Struct || v.NumField() < 2 {
		return nil
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.Anonymous || !writesItself(field.Type) && !writesItself(reflect.PointerTo(field.Type)) {
			continue
		}
		if !field.IsExported() || slices.Equal(written(v), written(v.Field(i))) {
			return fmt.Errorf("%s is written as its embedded %s alone", at, field.Name)
		}
	}
	return nil
}

// written returns the JSON of v, by way of its address where json.Marshal would take it.
func written(v reflect.Value) []byte {
	if v.CanAddr() {
		v = v.Addr()
	}
	out, _ := json.Marshal(v.Interface()) // as a part of the input it could be marshalled
	return out
}

package layered

import (
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// hashInput returns the key of a call without a key: the SHA-256, in hex, of the
// input's canonical form. That is what json.Marshal writes, which sorts the keys of
// maps. An input of which json.Marshal would leave something out is refused, since
// different inputs would then share a key unseen.
func hashInput(in any) (string, error) {
	canonical, err := json.Marshal(in)
	if err != nil {
		return "", err
	}
	if err := readsWhole(reflect.ValueOf(in), "the input"); err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}

// readsWhole returns an error if v has a field that json.Marshal can't see. Fields
// that are left out by their tag are left out on purpose.
func readsWhole(v reflect.Value, at string) error {
	if !v.IsValid() || writesItself(v.Type()) {
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return readsWhole(v.Elem(), at)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := readsWhole(v.Index(i), fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if err := readsWhole(v.MapIndex(key), fmt.Sprintf("%s[%v]", at, key)); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			switch {
			case field.Tag.Get("json") == "-":
			case !field.IsExported() && !field.Anonymous:
				return fmt.Errorf("%s has the unexported field %s", at, field.Name)
			default:
				if err := readsWhole(v.Field(i), at+"."+field.Name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// writesItself reports whether json.Marshal asks the type itself what to write.
func writesItself(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

const prefixLen = 32

// fileName returns the name of a key's lock file: a prefix for people, and a full
// hash, since prefixes can be equal.
func fileName(namespace, key string) string {
	buf := make([]byte, 0, 1+prefixLen+1+2*sha256.Size)
	if key == "" || key[0] == '.' || key[0] == '-' {
		buf = append(buf, '_')
	}
	for _, c := range []byte(key[:min(len(key), prefixLen)]) {
		if strings.IndexByte(plain, c) < 0 {
			c = '_'
		}
		buf = append(buf, c)
	}
	// The length keeps ("a", "bc") and ("ab", "c") apart.
	sum := sha256.Sum256([]byte(strconv.Itoa(len(namespace)) + ":" + namespace + key))
	return string(hex.AppendEncode(append(buf, '-'), sum[:]))
}

// plain are the characters of a key that a file name shows as they are.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."

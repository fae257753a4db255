package layered

import (
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// hashInput returns the key of a call without a key: the SHA-256, in hex, of the
// input's canonical form. That is what json.Marshal writes, which sorts the keys of
// maps. It refuses an input of which that is not known to be the same each time, or for
// which something is left out unseen: calls would not exclude each other, or different
// inputs would share a key.
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

// writtenWhole returns an error if json.Marshal leaves something of v out, writes
// something else instead, or may write it differently the next time.
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
		if e := v.Type().Elem(); e.Kind() == reflect.Uint8 && !writesItself(e) {
			return nil // one by one they would take long
		}
		for i := range v.Len() {
			if err := writtenWhole(v.Index(i), fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		return entriesWrittenWhole(v, at)
	case reflect.Struct:
		if err := fieldsApart(v.Type(), at, map[string]bool{}, nil); err != nil {
			return err
		}
		return fieldsWrittenWhole(v, at)
	}
	return nil
}

// trusted are types that write themselves whole, and the same each time.
var trusted = []reflect.Type{
	reflect.TypeFor[time.Time](), reflect.TypeFor[netip.Addr](), reflect.TypeFor[netip.AddrPort](), reflect.TypeFor[netip.Prefix](),
}

// ownWords returns an error unless v, which writes itself, is known to do that well.
func ownWords(v reflect.Value, at string) error {
	if !slices.Contains(trusted, structure(v.Type())) {
		return fmt.Errorf("%s is a %v, which writes itself: whether that is the same each time can't be told", at, v.Type())
	}
	if v = reflect.Indirect(v); !v.IsValid() {
		return nil
	}
	// TZ says where that is.
	if t, ok := v.Interface().(time.Time); ok && t.Location() == time.Local {
		return fmt.Errorf("%s is a time in the local zone, which processes differ in: take its UTC()", at)
	}
	return nil
}

// writesItself reports whether json.Marshal asks the type itself what to write, be it
// only where it finds it at an address.
func writesItself(t reflect.Type) bool {
	return marshals(t) || t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface && marshals(reflect.PointerTo(t))
}

func marshals(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

// entriesWrittenWhole is writtenWhole for a map. Keys that write themselves are refused
// whatever their type: two of them that are written alike, as two time.Time of one instant
// can be, come in any order.
func entriesWrittenWhole(v reflect.Value, at string) error {
	if key := v.Type().Key(); key.Kind() != reflect.String && marshals(key) {
		return fmt.Errorf("%s has keys of type %v, which write themselves: two may be written alike", at, key)
	}
	for entry := v.MapRange(); entry.Next(); {
		if key := entry.Key(); key.Kind() == reflect.String && !utf8.ValidString(key.String()) {
			return fmt.Errorf("a key of %s is not valid UTF-8", at)
		}
		if err := writtenWhole(entry.Value(), fmt.Sprintf("%s[%v]", at, entry.Key())); err != nil {
			return err
		}
	}
	return nil
}

// embedded reports whether the fields of a field go into the object beside it.
func embedded(field reflect.StructField) bool {
	return field.Anonymous && structure(field.Type).Kind() == reflect.Struct
}

// fieldsApart returns an error if two fields of a struct of type t have one name in JSON,
// and so leave each other out, whatever their values are. The fields of an embedded
// struct go into the same object as those beside it. names are those that the object has
// already, and within are the types that t is embedded in.
func fieldsApart(t reflect.Type, at string, names map[string]bool, within []reflect.Type) error {
	if slices.Contains(within, t) {
		return fmt.Errorf("%s has a %v that embeds itself: JSON leaves the inner one out", at, t)
	}
	within = append(within, t)
	for i := range t.NumField() {
		field := t.Field(i)
		name, written := nameOfField(field)
		if !written {
			continue
		}
		if name == "" {
			if err := fieldsApart(structure(field.Type), at, names, within); err != nil {
				return err
			}
			continue
		}
		if names[name] {
			return fmt.Errorf("%s has two fields that JSON calls %s", at, name)
		}
		names[name] = true
	}
	return nil
}

// fieldsWrittenWhole is writtenWhole for the fields of a struct. Fields that are left out
// by their tag are left out on purpose.
func fieldsWrittenWhole(v reflect.Value, at string) error {
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		name, written := nameOfField(field)
		switch {
		case !written:
			continue
		case !field.IsExported() && !embedded(field):
			return fmt.Errorf("%s has the unexported field %s", at, field.Name)
		case judgesItself(field):
			return fmt.Errorf("%s.%s is left out when its own IsZero says so: whether that is the same each time can't be told", at, field.Name)
		case name != "":
			if err := writtenWhole(value, at+"."+field.Name); err != nil {
				return err
			}
			continue
		}
		if writesItself(field.Type) {
			return fmt.Errorf("%s embeds %v, which writes itself", at, field.Type)
		}
		if value = reflect.Indirect(value); value.IsValid() {
			if err := fieldsWrittenWhole(value, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// nameOfField returns what JSON calls a field: nothing if its own fields stand for it. A
// tag of "-" says that it is not written.
func nameOfField(field reflect.StructField) (name string, written bool) {
	tag := field.Tag.Get("json")
	if tag == "-" {
		return "", false
	}
	name, _, _ = strings.Cut(tag, ",")
	if strings.ContainsFunc(name, unfit) {
		name = ""
	}
	if name == "" && !embedded(field) {
		name = field.Name
	}
	return name, true
}

// judgesItself reports whether json.Marshal asks a field whether to leave it out.
func judgesItself(field reflect.StructField) bool {
	_, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	t := reflect.TypeFor[interface{ IsZero() bool }]()
	return slices.Contains(strings.Split(options, ","), "omitzero") && !slices.Contains(trusted, structure(field.Type)) &&
		(field.Type.Implements(t) || reflect.PointerTo(field.Type).Implements(t))
}

// unfit reports whether json.Marshal takes no name from a tag with r in it.
func unfit(r rune) bool {
	return !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// structure returns t, or what it points to.
func structure(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

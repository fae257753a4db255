package runscope

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Key is what dig knows a value by. Name and Group are never both set.
type Key struct {
	Type  reflect.Type // for a group: the type of an element
	Name  string
	Group string
}

// String returns the key the way dig prints it, such as *app.DB[name="ro"].
func (k Key) String() string {
	switch {
	case k.Name != "":
		return fmt.Sprintf("%v[name=%q]", k.Type, k.Name)
	case k.Group != "":
		return fmt.Sprintf("%v[group=%q]", k.Type, k.Group)
	}
	return fmt.Sprint(k.Type)
}

// Leaf is a parameter as dig sees it once all parameter objects are taken apart.
// The leaves of a [Plan] are those that must come from the application.
type Leaf struct {
	Key
	Optional bool // its absence is a zero value
	Soft     bool // a group that has nothing built for its sake
}

// inTag returns the struct tag that asks for l in a dig.In struct.
func (l Leaf) inTag() reflect.StructTag {
	switch {
	case l.Group != "" && l.Soft:
		return tag("group", l.Group+",soft")
	case l.Optional && l.Name != "":
		return `optional:"true" ` + l.tag()
	case l.Optional:
		return `optional:"true"`
	}
	return l.tag()
}

// outTag returns the struct tag that gives k in a dig.Out struct.
func (k Key) outTag() reflect.StructTag {
	if k.Group != "" {
		return tag("group", k.Group+",flatten")
	}
	return k.tag()
}

func (k Key) tag() reflect.StructTag {
	if k.Group != "" {
		return tag("group", k.Group)
	}
	return tag("name", k.Name)
}

// fieldType returns the type of a field that carries k: groups travel as slices.
func (k Key) fieldType() reflect.Type {
	if k.Group != "" {
		return reflect.SliceOf(k.Type)
	}
	return k.Type
}

func tag(name, value string) reflect.StructTag {
	if value == "" {
		return ""
	}
	return reflect.StructTag(name + ":" + strconv.Quote(value))
}

func joinKeys(keys []Key) string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.String()
	}
	return strings.Join(names, ", ")
}

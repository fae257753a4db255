package etcdstore

import "strings"

// nameOf returns the name of the record of key. What stands before the last slash is
// the prefix of a store, so stores with different prefixes never share a name, even
// if one prefix begins with the other.
func nameOf(prefix, key string) string { return prefix + escape.Replace(key) }

// escape is one-to-one, and leaves names readable.
var escape = strings.NewReplacer("%", "%25", "/", "%2F")

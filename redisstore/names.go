package redisstore

import "strings"

// lockName returns the name of the record of key, which is also the channel on
// which its end is told. The braces make a cluster put all that belongs to a lock
// into one slot: what stands between the first { and the next } decides. So the key
// must not close them itself.
func lockName(prefix, key string) string { return prefix + "{" + escape.Replace(key) + "}" }

// undoneName returns the name of the tombstone of one acquisition. It never is the
// name of a lock, which ends with its only }.
func undoneName(lock, tag string) string { return lock + ":undone:" + tag }

// freedName returns a new name for the trace of a release.
func freedName(prefix, key string) string { return lockName(prefix, key) + ":freed:" + newID() }

// escape is one-to-one, and leaves names readable.
var escape = strings.NewReplacer("%", "%25", "}", "%7D")

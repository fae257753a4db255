package redisstore

import (
	"strings"
	"testing"
)

// slotPart is the part of a name that decides about its slot: what stands between the
// first { and the next }, if anything does.
func slotPart(name string) string {
	_, after, opened := strings.Cut(name, "{")
	part, _, closed := strings.Cut(after, "}")
	if !opened || !closed || part == "" {
		return name
	}
	return part
}

var keys = []string{
	"nightly", "{", "}", "{}", "}{", "{a}:b", "a}b", "a%7Db", "%7D", "%257D", "%", "%25", "a{b}c{d}", " ", "\n", "日本語", "a:undone:b", "a}:undone:b",
}

func TestWhatBelongsToALockIsInOneSlot(t *testing.T) {
	for _, key := range keys {
		lock := lockName("lockfx:", key)
		if part := slotPart(lock); part == lock || slotPart(undoneName(lock, "tag")) != part {
			t.Errorf("%q: the lock %q and its tombstone are in two slots", key, lock)
		}
	}
}

func TestNamesAreOneToOne(t *testing.T) {
	seen := map[string]string{}
	for _, key := range keys {
		for _, name := range []string{lockName("lockfx:", key), undoneName(lockName("lockfx:", key), "b")} {
			if other, ok := seen[name]; ok {
				t.Errorf("%q and %q share the name %q", key, other, name)
			}
			seen[name] = key
		}
	}
}

func FuzzNames(f *testing.F) {
	for _, key := range keys {
		f.Add(key, "a")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if a == "" || b == "" {
			return
		}
		lockA, lockB := lockName("p:", a), lockName("p:", b)
		if (lockA == lockB) != (a == b) || undoneName(lockA, "t") == lockB {
			t.Errorf("%q has the name %q, and %q has %q", a, lockA, b, lockB)
		}
		if slotPart(lockA) != slotPart(undoneName(lockA, "t")) || strings.Count(lockA, "}") != 1 {
			t.Errorf("%q: %q is not in one slot", a, lockA)
		}
	})
}

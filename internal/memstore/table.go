package memstore

// minChanges is how many changes a table takes at least before it is compacted,
// so that a small one is not copied all the time.
const minChanges = 128

// table is a map that gives memory back.
//
// A Go map keeps the size that it once had. So a table is copied into a fresh map
// once it has changed more often than it has entries, or than it had after the
// last copy. The first bound follows a table that is emptied, the second one that
// fills with entries which are not worth keeping. Either way a copy costs each
// change a constant, and the memory stays within a constant factor of the entries
// that are kept.
type table[V any] struct {
	entries map[string]V
	kept    int // entries after the last compaction
	changes int // since then
}

func newTable[V any]() table[V] { return table[V]{entries: make(map[string]V)} }

func (t *table[V]) put(key string, v V) {
	t.entries[key] = v
	t.changes++
}

func (t *table[V]) remove(key string) {
	delete(t.entries, key)
	t.changes++
}

func (t *table[V]) due() bool {
	return t.changes > max(minChanges, min(t.kept, len(t.entries)))
}

// compact copies the entries to keep into a fresh map.
func (t *table[V]) compact(keep func(V) bool) {
	fresh := make(map[string]V)
	for key, v := range t.entries {
		if keep(v) {
			fresh[key] = v
		}
	}
	t.entries, t.kept, t.changes = fresh, len(fresh), 0
}

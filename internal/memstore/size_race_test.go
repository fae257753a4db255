//go:build race

package memstore_test

// manyKeys is smaller under the race detector, which makes the heap tests slow and
// has nothing to find in them.
const manyKeys = 100_000

//go:build !race

package memstore_test

// manyKeys is how many distinct keys a store must be able to forget.
const manyKeys = 1_000_000

//go:build race

package runscope_test

// The race detector makes runs slow and finds nothing more in many of them.
const manyRuns = 2_000

//go:build !race

package runscope_test

const manyRuns = 100_000

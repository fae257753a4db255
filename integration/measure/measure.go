// Package measure compares stores with the least that their engines can take.
package measure

import (
	"slices"
	"testing"
	"time"
)

// pairs is how often the two sides of a comparison are measured in turn, so that a
// busy moment of the machine hits both.
const pairs = 40

// Compare reports the p50 of ours and of the floor, each over samples of each calls, and
// the median of the ratios of the pairs.
func Compare(b *testing.B, each int, ours, floor func()) {
	b.Helper()
	for range b.N {
		var ratios, our, raw []float64
		for range pairs {
			f := p50(each, floor)
			o := p50(each, ours)
			ratios, our, raw = append(ratios, o/f), append(our, o), append(raw, f)
		}
		b.ReportMetric(median(our), "ns/ours")
		b.ReportMetric(median(raw), "ns/floor")
		b.ReportMetric(median(ratios), "ratio")
	}
}

func p50(n int, op func()) float64 {
	took := make([]float64, n)
	for i := range took {
		begin := time.Now()
		op()
		took[i] = float64(time.Since(begin))
	}
	return median(took)
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// Must returns a function that returns its value, or ends the benchmark with its error.
func Must[T any](b *testing.B) func(T, error) T {
	return func(v T, err error) T {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
		return v
	}
}

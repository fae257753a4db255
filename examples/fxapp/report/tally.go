package report

import (
	"cmp"
	"slices"
	"strings"
)

// tally counts names.
type tally map[string]*int64

func (t tally) add(name string) {
	if n, known := t[name]; known {
		*n++
		return
	}
	one := int64(1)
	t[strings.Clone(name)] = &one // name may share the memory of a whole line
}

// count is one row of a table.
type count struct {
	name string
	n    int64
}

// top returns the limit most frequent names, those of equal frequency by name.
func (t tally) top(limit int) []count {
	counts := make([]count, 0, len(t))
	for name, n := range t {
		counts = append(counts, count{name, *n})
	}
	slices.SortFunc(counts, func(a, b count) int {
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.name, b.name))
	})
	return counts[:min(limit, len(counts))]
}

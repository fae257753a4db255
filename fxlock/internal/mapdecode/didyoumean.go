package mapdecode

import (
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
)

// DidYouMean suggests the known name that is closest to name, if one is close, and
// otherwise lists them.
func DidYouMean(name string, known []string) string {
	plain := func(s string) string {
		return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(s))
	}
	best, distance := "", len(name)/2+1
	for _, k := range known {
		if d := levenshtein.ComputeDistance(plain(name), plain(k)); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return "; known are " + strings.Join(known, ", ")
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

package layered

import (
	"context"
	"testing"
)

// BenchmarkWithLock shows what a call costs by the layers it takes. The layers alone
// are measured in the module bench, beside peers.
func BenchmarkWithLock(b *testing.B) {
	for _, bb := range []struct {
		name  string
		scope Scope
	}{
		{"none", Scope{Off, Off, Off, Off}},
		{"memory", Scope{On, Off, Off, Off}},
		{"memory+worker", Scope{On, On, Off, Off}},
		{"flock", Scope{Off, Off, On, Off}},
		{"default", Scope{}},
		{"poll", Scope{Off, Off, Off, On}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			action := func(context.Context, Call[int]) (int, error) { return 0, nil }
			opts := []Option{WithKey("a"), WithDir(b.TempDir()), WithScope(bb.scope)}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := WithLock(b.Context(), 1, action, opts...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	files.CloseIdle()
}

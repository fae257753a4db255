package lifecycle_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

// The whole table, once more: a move that is added needs a reason here as well.
var legal = map[[2]lockfx.State]string{
	{lockfx.Idle, lockfx.Acquiring}:     "acquire",
	{lockfx.Idle, lockfx.Released}:      "dispose",
	{lockfx.Acquiring, lockfx.Idle}:     "no grant",
	{lockfx.Acquiring, lockfx.Held}:     "grant",
	{lockfx.Acquiring, lockfx.Released}: "no grant, disposed of",
	{lockfx.Held, lockfx.Releasing}:     "release",
	{lockfx.Held, lockfx.Lost}:          "loss",
	{lockfx.Releasing, lockfx.Released}: "the store has answered",
	{lockfx.Lost, lockfx.Released}:      "release",
	{lockfx.Released, lockfx.Acquiring}: "acquire again",
}

func TestAnIllegalMoveIsABug(t *testing.T) {
	states := []lockfx.State{lockfx.Idle, lockfx.Acquiring, lockfx.Held, lockfx.Releasing, lockfx.Released, lockfx.Lost}
	for _, from := range states {
		for _, to := range states {
			r := newRig(t)
			o := <-spawn(func() error { r.Force(from, to); return nil })
			_, ok := legal[[2]lockfx.State{from, to}]
			if o.returned != ok || ok != slices.Contains(lifecycle.Moves[from], to) {
				t.Errorf("from %v to %v: %+v, legal: %v", from, to, o, ok)
			}
			if want := fmt.Sprintf(`lockfx: illegal move of "nightly" from %v to %v`, from, to); !ok && o.panicked != want {
				t.Errorf("panicked with %v, want %s", o.panicked, want)
			}
		}
	}
}

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
	{lockfx.StateIdle, lockfx.StateAcquiring}:     "acquire",
	{lockfx.StateIdle, lockfx.StateReleased}:      "dispose",
	{lockfx.StateAcquiring, lockfx.StateIdle}:     "no grant",
	{lockfx.StateAcquiring, lockfx.StateHeld}:     "grant",
	{lockfx.StateAcquiring, lockfx.StateReleased}: "no grant, disposed of",
	{lockfx.StateHeld, lockfx.StateReleasing}:     "release",
	{lockfx.StateHeld, lockfx.StateLost}:          "loss",
	{lockfx.StateReleasing, lockfx.StateReleased}: "the store has answered",
	{lockfx.StateLost, lockfx.StateReleased}:      "release",
	{lockfx.StateReleased, lockfx.StateAcquiring}: "acquire again",
}

func TestAnIllegalMoveIsABug(t *testing.T) {
	states := []lockfx.State{lockfx.StateIdle, lockfx.StateAcquiring, lockfx.StateHeld, lockfx.StateReleasing, lockfx.StateReleased, lockfx.StateLost}
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

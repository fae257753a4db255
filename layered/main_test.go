package layered

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockfx/lockfx"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(play(role))
	}
	goleak.VerifyTestMain(m)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until holds, or until the whole test run is out of time.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for !holds() {
		if t.Context().Err() != nil {
			t.Fatal("never: " + what)
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// acquired fails unless a call acquired its lock. On a machine that is busy enough, a
// lock with the shortest stale time can be lost at once.
func acquired(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, lockfx.ErrLost) {
		must(t, err)
	}
}

// nothing is an action that does nothing.
func nothing[I any](context.Context, Call[I]) (struct{}, error) { return struct{}{}, nil }

// onlyIn returns the option that switches on the given layers alone.
func onlyIn(on ...Layer) Option {
	modes := [layers]Mode{Off, Off, Off, Off}
	for _, l := range on {
		modes[l] = On
	}
	return WithScope(scopeOf(modes))
}

func scopeOf(m [layers]Mode) Scope {
	return Scope{m[LayerMemory], m[LayerWorker], m[LayerFlock], m[LayerPoll]}
}

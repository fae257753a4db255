package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// result is what a run of the program left.
type result struct {
	code           int
	stdout, stderr string
}

// runProgram runs the program over a store and checks that its lease is free in the
// end, whatever happened.
func runProgram(ctx context.Context, t *testing.T, store lockfx.Store, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := runOver(ctx, store, args, &stdout, &stderr)
	wantFree(t, store)
	return result{code, stdout.String(), stderr.String()}
}

func wantFree(t *testing.T, store lockfx.Store) {
	t.Helper()
	lease, err := store.(lockfx.Inspector).Inspect(context.Background(), lockName)
	if err != nil || lease != (lockfx.Lease{}) {
		t.Errorf("the lease is not free: %+v, %v", lease, err)
	}
}

func memory() *fxlock.MemoryStore { return fxlock.NewMemoryStore() }

func writeFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "some.log")
	writeTo(t, name, text)
	return name
}

func writeTo(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

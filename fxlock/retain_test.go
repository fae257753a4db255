package fxlock_test

import (
	"context"
	"runtime"
	"testing"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx/fxlock"
)

// However many runs there were, nothing of them is kept: not by the container that
// fx.Annotate makes for a constructor with hooks, not for a condition of one run.
func TestRuns_KeepNothing(t *testing.T) {
	lock := newLock(t, fxlock.NewMemoryStore(), fxlock.PerRun(
		fx.Annotate(newDB, fx.OnStop(func(context.Context) error { return nil }))))
	const runs = 300
	run := func() {
		captured := make([]byte, 64)
		must(t, lock.Run(t.Context(), func(*DB) {}, fxlock.If(func() bool { return len(captured) == 64 })))
	}
	run()
	before := heapInUse()
	for range runs {
		run()
	}
	if kept := (heapInUse() - before) / runs; kept > 100 {
		t.Errorf("a run leaves %d bytes behind", kept)
	}
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

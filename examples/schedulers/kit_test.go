package schedulers_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"go.uber.org/fx"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/examples/schedulers"
	"github.com/lockfx/lockfx/fxlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	replicas = 3
	ticks    = 10
)

// work counts what all replicas do.
type work struct{ runs, inside, overlaps atomic.Int64 }

// do is the job: a short one, since replicas must not run it one after the other.
func (w *work) do(context.Context) error {
	if w.inside.Add(1) > 1 {
		w.overlaps.Add(1)
	}
	time.Sleep(50 * time.Millisecond)
	w.inside.Add(-1)
	w.runs.Add(1)
	return nil
}

func (w *work) want(t *testing.T, runs int64) {
	t.Helper()
	if got := w.runs.Load(); got != runs || w.overlaps.Load() > 0 {
		t.Errorf("%d runs, %d overlaps; want %d runs", got, w.overlaps.Load(), runs)
	}
}

// replica starts an application and returns what stops it.
func replica(t *testing.T, opts ...fx.Option) (stop func()) {
	t.Helper()
	app := fx.New(append(opts, fx.NopLogger)...)
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := app.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// scheduler is a gocron that starts and stops with the application, and runs job every
// second.
func scheduler(lc fx.Lifecycle, opt gocron.SchedulerOption, job any) error {
	s, err := gocron.NewScheduler(opt)
	if err != nil {
		return err
	}
	_, err = s.NewJob(gocron.DurationJob(time.Second), gocron.NewTask(job), gocron.WithName("nightly"))
	lc.Append(fx.StartStopHook(s.Start, s.Shutdown))
	return err
}

// jobOver returns a module that provides the work as a Job.
func jobOver(store *fxlock.MemoryStore, w *work, opts ...fxlock.Option) fx.Option {
	return fx.Options(
		fx.Supply(zap.NewNop()),
		fxlock.Module("nightly", append(opts, fxlock.WithStore(store), fxlock.Body[schedulers.Job](w.do, fxlock.SkipOn(lockfx.ErrNotAcquired)))...))
}

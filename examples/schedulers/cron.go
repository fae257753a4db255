package schedulers

import (
	"context"
	"fmt"

	"github.com/robfig/cron/v3"
	"go.uber.org/fx"
	"go.uber.org/zap"
)

// Job is one that a lock guards: see [fxlock.Body].
type Job func(context.Context) error

// NewCron returns a cron that runs job whenever spec says so, from the application's
// start to its stop, which cancels a running job and waits for it. An error is logged:
// [fxlock.SkipOn] makes it none that another replica runs the job.
//
// Replicas whose clocks differ would run a short job one after the other:
// [fxlock.MinHold] keeps them from it.
func NewCron(lc fx.Lifecycle, spec string, job Job, logger *zap.Logger) (*cron.Cron, error) {
	c := cron.New()
	var ctx context.Context // of the jobs, from a start to the next stop
	var cancel context.CancelFunc
	_, err := c.AddFunc(spec, func() {
		if err := job(ctx); err != nil {
			logger.Error("job failed", zap.String("spec", spec), zap.Error(err))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("schedule the job: %w", err)
	}
	lc.Append(fx.StartStopHook(func() {
		ctx, cancel = context.WithCancel(context.Background())
		c.Start()
	}, func(stop context.Context) error {
		cancel()
		select {
		case <-c.Stop().Done():
			return nil
		case <-stop.Done():
			return fmt.Errorf("stop the job at %q: it still runs: %w", spec, context.Cause(stop))
		}
	}))
	return c, nil
}

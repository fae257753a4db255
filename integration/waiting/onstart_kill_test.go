package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx/fxlock"
)

// starter is an application that does work while it starts, with the defaults of the
// module.
type starter struct {
	Place place
	Key   string
}

func startsWith(key string, s store, work func(context.Context) error) fx.Option {
	return fx.Options(fx.NopLogger,
		fxlock.Module("migrations", fxlock.WithKey(key), fxlock.WithStore(s), fxlock.OnStart[migrated](work)))
}

// work starts the application, calls works while it works, and goes on until ctx ends.
func (s starter) work(ctx context.Context, works func()) error {
	p, err := s.Place.open(ctx)
	if err != nil {
		return err
	}
	err = fx.New(startsWith(s.Key, p, func(ctx context.Context) error {
		works()
		<-ctx.Done()
		return context.Cause(ctx)
	})).Start(ctx)
	return errors.Join(err, errors.New("nobody ended this process"))
}

// A replica is killed in its work; another one that starts meanwhile does the work, in
// the time that fx gives a start.
func TestAReplicaThatIsKilledInItsWorkFailsNoOtherStart(t *testing.T) {
	overEach(t, func(t *testing.T, e *engine) {
		t.Parallel()
		works := told(t, order{Start: &starter{Place: e.place(), Key: t.Name()}})
		works.hears(t)
		o := observe(e.opened(t))
		app := fx.New(startsWith(t.Name(), o, func(context.Context) error { return nil }))
		ctx, cancel := context.WithTimeout(t.Context(), app.StartTimeout())
		defer cancel()
		started := make(chan error)
		go func() { started <- app.Start(ctx) }()
		if err := o.awaitLine(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // until its lease was renewed
		works.kill()
		begun := time.Now()
		if err := <-started; err != nil {
			t.Fatal(err)
		}
		t.Logf("started %v after the kill", time.Since(begun).Round(time.Millisecond))
		if err := app.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

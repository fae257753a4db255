package queue_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx/fxlock"
)

type migrated struct{}

// migration is work that applications do while they start.
type migration struct {
	key  string
	room room
	done atomic.Int32
	// inLine has the lock of each application. The first that migrates goes on when
	// the other one waits.
	inLine []*observed
}

// application is one that migrates while it starts.
func (m *migration) application(t *testing.T, e *engine, opts ...fxlock.RunOption) *fx.App {
	t.Helper()
	o := observe(e.opened(t))
	me := len(m.inLine)
	m.inLine = append(m.inLine, o)
	return application(fxlock.Module("migrations",
		fxlock.WithKey(m.key), fxlock.WithTTL(leaseTime), fxlock.WithStore(o),
		fxlock.OnStart[migrated](func(ctx context.Context) error {
			if m.done.Load() == 0 {
				if err := m.inLine[1-me].awaitLine(ctx); err != nil {
					return err
				}
			}
			err := m.room.visit()
			m.done.Add(1)
			return err
		}, opts...)))
}

// starts starts two applications at once and stops them again.
func (m *migration) starts(t *testing.T, e *engine, opts ...fxlock.RunOption) {
	t.Helper()
	m.key, m.room = t.Name(), roomIn(t.TempDir())
	apps := []*fx.App{m.application(t, e, opts...), m.application(t, e, opts...)}
	started := make(chan error)
	for _, app := range apps {
		go func() { started <- app.Start(t.Context()) }()
	}
	if err := errors.Join(<-started, <-started); err != nil {
		t.Fatal(err)
	}
	for _, app := range apps {
		if err := app.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestTwoApplicationsMigrateOneAfterTheOther(t *testing.T) {
	overEach(t, func(t *testing.T, e *engine) {
		var m migration
		m.starts(t, e)
		if n := m.done.Load(); n != 2 {
			t.Errorf("%d migrations, want that of each", n)
		}
	})
}

func TestWhatAnotherApplicationHasMigratedIsSkipped(t *testing.T) {
	overEach(t, func(t *testing.T, e *engine) {
		var m migration
		m.starts(t, e, fxlock.If(func() bool { return m.done.Load() == 0 }))
		if n := m.done.Load(); n != 1 {
			t.Errorf("%d migrations, want one", n)
		}
	})
}

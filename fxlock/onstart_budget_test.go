package fxlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// With the defaults of this module and of fx: a replica dies in its work, and those that
// start with it do the work in their own time.
func TestOnStart_AnotherReplicaTakesOverWithinTheStart(t *testing.T) {
	for _, dies := range []time.Duration{0, time.Second, 4 * time.Second, 8 * time.Second} {
		t.Run(dies.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				store := fxlock.NewMemoryStore()
				replica := func(store lockfx.Store, work func(context.Context)) *fx.App {
					return fx.New(fx.NopLogger, fxlock.Module("migrations", fxlock.WithStore(store), fxlock.OnStart[Migrated](work)))
				}
				way := newLink(store)
				dead := replica(way, func(ctx context.Context) { <-ctx.Done() })
				go func() { _ = inItsTime(dead) }()
				synctest.Wait() // it works
				others := make(chan error)
				for range 2 {
					go func() {
						others <- inItsTime(replica(store, func(context.Context) { time.Sleep(100 * time.Millisecond) }))
					}()
				}
				time.Sleep(dies)
				way.set(refuses) // as if its process was killed: nothing renews or releases any more
				noError(t, <-others)
				noError(t, <-others)
			})
		})
	}
}

// A module with a job of the start has a shorter lease, unless options say otherwise.
func TestOnStart_DefaultTTL(t *testing.T) {
	for name, tt := range map[string]struct {
		opts []fxlock.Option
		want time.Duration
	}{
		"default":     {nil, 5 * time.Second},
		"WithTTL":     {options(fxlock.WithTTL(time.Minute)), time.Minute},
		"a heartbeat": {options(fxlock.WithHeartbeat(10 * time.Second)), 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				store := fxlock.NewMemoryStore()
				started(t, fx.StartTimeout(time.Hour), fxlock.Module(key, append(tt.opts, fxlock.WithStore(store), fxlock.OnStart[Migrated](func(ctx context.Context) error {
					lease, err := store.Inspect(ctx, key)
					if lease.TimeLeft != tt.want {
						t.Errorf("the lease lasts %v, want %v", lease.TimeLeft, tt.want)
					}
					return err
				}))...))
			})
		})
	}
}

// Who asks for a lease as long as the start is warned, and told when it has come to that.
func TestOnStart_ATTLAsLongAsTheStart(t *testing.T) {
	for name, tt := range map[string]struct {
		ttl    time.Duration
		warned bool
	}{"shorter": {14 * time.Second, false}, "as long": {15 * time.Second, true}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				core, logs := observer.New(zapcore.WarnLevel)
				store := fxlock.NewMemoryStore()
				release := holding(t, newLock(t, store))
				defer release()
				app := fx.New(fx.NopLogger, fxlock.Module(key, fxlock.WithStore(store), fxlock.WithTTL(tt.ttl),
					fxlock.WithLogger(zap.New(core)), fxlock.OnStart[Migrated](func() {})))
				err := inItsTime(app)
				const hint = "the ttl of 15s is not shorter than the start: a replica that dies in its work fails the starts of the others, see fxlock.WithTTL"
				if warned := logs.FilterMessage(hint).Len() == 1; warned != tt.warned {
					t.Errorf("warned: %v, want %v: %v", warned, tt.warned, logs.All())
				}
				if tt.warned {
					wantText(t, err, hint)
				}
			})
		})
	}
}

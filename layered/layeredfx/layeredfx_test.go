package layeredfx_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/layered"
	"github.com/lockfx/lockfx/layered/layeredfx"
)

var inProcess = layered.WithScope(layered.Scope{Flock: layered.Off, Poll: layered.Off})

func run(ctx context.Context, l *layered.Locker, action func(context.Context)) error {
	_, err := layered.WithLock(ctx, 0, func(ctx context.Context, _ layered.Call[int]) (int, error) {
		action(ctx)
		return 0, nil
	}, layered.WithKey("a"), layered.WithLocker(l))
	return err
}

type lockers struct {
	fx.In
	Unnamed *layered.Locker
	One     *layered.Locker `name:"one"`
	Two     *layered.Locker `name:"two"`
}

func TestTwoUnnamedLockersAreToldWithTheCure(t *testing.T) {
	err := fx.New(fx.NopLogger, layeredfx.Module("one", inProcess), layeredfx.Module("two", inProcess)).Err()
	if err == nil || !strings.Contains(err.Error(), "an unnamed *layered.Locker, of which there can be one: use layeredfx.NamedModule") {
		t.Error(err)
	}
}

func TestModulesProvideTheirLockers(t *testing.T) {
	fxtest.New(t,
		layeredfx.Module("one", inProcess),
		layeredfx.NamedModule("two", inProcess),
		fx.Invoke(func(in lockers) {
			if in.Unnamed != in.One || in.One == in.Two {
				t.Errorf("%p, %p, %p", in.Unnamed, in.One, in.Two)
			}
		}),
	).RequireStart().RequireStop()
}

func TestTwoUnnamedLockersAreAnError(t *testing.T) {
	err := fx.New(fx.NopLogger, layeredfx.Module("one"), layeredfx.Module("two")).Err()
	if err == nil || !strings.Contains(err.Error(), "already provided") {
		t.Errorf("err = %v", err)
	}
}

func TestFaultsAreErrorsOfTheApplication(t *testing.T) {
	err := fx.New(fx.NopLogger, layeredfx.Module("one", layered.WithTimeout(-1), layered.WithStale(1))).Err()
	for _, part := range []string{`layeredfx.Module("one")`, "WithTimeout(-1ns)", "WithStale(1ns)"} {
		if !errors.Is(err, lockfx.ErrConfig) || !strings.Contains(err.Error(), part) {
			t.Errorf("err = %v, want %s in it", err, part)
		}
	}
	if err := fx.New(fx.NopLogger, layeredfx.Module("")).Err(); err == nil {
		t.Error("a module without a name was taken")
	}
}

func TestStopWaitsForActionsAndRefusesNewOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l *layered.Locker
		app := fxtest.New(t, layeredfx.Module("one", inProcess), fx.Populate(&l)).RequireStart()
		finish, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			if err := run(t.Context(), l, func(ctx context.Context) {
				<-finish
				if ctx.Err() != nil {
					t.Error("the action was cancelled although the stop's time was not over")
				}
			}); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		go func() {
			app.RequireStop()
			close(stopped)
		}()
		synctest.Wait()
		if err := run(t.Context(), l, func(context.Context) { t.Error("it ran") }); !errors.Is(err, lockfx.ErrDisposed) {
			t.Errorf("err = %v", err)
		}
		select {
		case <-stopped:
			t.Error("stop did not wait")
		default:
		}
		close(finish)
		<-stopped

		app.RequireStart() // an application can be started again
		if err := run(t.Context(), l, func(context.Context) {}); err != nil {
			t.Error(err)
		}
		app.RequireStop()
	})
}

func TestStopGivesUpWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l *layered.Locker
		app := fxtest.New(t, layeredfx.Module("one", inProcess), fx.Populate(&l)).RequireStart()
		var cause error
		go func() {
			_ = run(t.Context(), l, func(ctx context.Context) {
				<-ctx.Done()
				cause = context.Cause(ctx)
			})
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := app.Stop(ctx)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v", err)
		}
		synctest.Wait()
		if !errors.Is(cause, lockfx.ErrDisposed) {
			t.Errorf("the action's context ended with %v", cause)
		}
	})
}

package memoize_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx/memoize"
)

func TestCallingItselfIsAnErrorNotADeadlock(t *testing.T) {
	type getter = func(context.Context) (int, error)
	onAnotherGoroutine := func(ctx context.Context, get getter) (int, error) {
		var o outcome
		done := make(chan struct{})
		go func() { defer close(done); o.value, o.err = get(ctx) }()
		<-done
		return o.value, o.err
	}
	value := func(fn getter) getter {
		get := memoize.Value(func() (int, error) { return fn(context.Background()) })
		return func(context.Context) (int, error) { return get() }
	}
	for name, build := range map[string]func() getter{
		"Func with its context": func() (get getter) {
			get = memoize.Func(func(ctx context.Context) (int, error) { return get(ctx) })
			return get
		},
		"Func with a context below its own, on another goroutine": func() (get getter) {
			get = memoize.Func(func(ctx context.Context) (int, error) {
				ctx, cancel := context.WithCancel(context.WithValue(ctx, userKey{}, 1))
				defer cancel()
				return onAnotherGoroutine(ctx, get)
			})
			return get
		},
		"Func with a foreign context": func() (get getter) {
			get = memoize.Func(func(context.Context) (int, error) { return get(context.Background()) })
			return get
		},
		"Value": func() (get getter) {
			get = value(func(ctx context.Context) (int, error) { return get(ctx) })
			return get
		},
		"by way of a Value": func() (get getter) {
			inner := value(func(ctx context.Context) (int, error) { return get(ctx) })
			get = value(inner)
			return get
		},
		"Value after another Value": func() (get getter) {
			inner := value(func(context.Context) (int, error) { return 1, nil })
			get = value(func(ctx context.Context) (int, error) {
				if _, err := inner(ctx); err != nil {
					return 0, err
				}
				return get(ctx)
			})
			return get
		},
		"by way of a Func": func() (get getter) {
			inner := memoize.Func(func(ctx context.Context) (int, error) { return get(ctx) })
			get = memoize.Func(inner)
			return get
		},
		"Func by way of a Value": func() (get getter) {
			inner := value(func(ctx context.Context) (int, error) { return get(ctx) })
			get = memoize.Func(inner)
			return get
		},
		"Value by way of a Func": func() (get getter) {
			inner := memoize.Func(func(ctx context.Context) (int, error) { return get(ctx) })
			get = value(inner)
			return get
		},
	} {
		synctest.Test(t, func(t *testing.T) { // a deadlock fails a bubble at once
			get := build()
			if v, err := get(t.Context()); v != 0 || !errors.Is(err, memoize.ErrReentrant) {
				t.Errorf("%s: %v, %v", name, v, err)
			}
		})
	}
}

// Two getters that need each other, each begun by a caller of its own: the call that
// would close the circle is refused, whichever it is.
func TestFlightsThatWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, way := range []string{"Func", "Value"} {
			var a, b func(context.Context) (int, error)
			needs := func(other *func(context.Context) (int, error)) func(context.Context) (int, error) {
				fn := func(ctx context.Context) (int, error) {
					time.Sleep(time.Second)
					return (*other)(ctx)
				}
				if way == "Func" {
					return memoize.Func(fn)
				}
				get := memoize.Value(func() (int, error) { return fn(context.Background()) })
				return func(context.Context) (int, error) { return get() }
			}
			a, b = needs(&b), needs(&a)
			var all sync.WaitGroup
			for _, get := range []func(context.Context) (int, error){a, b} {
				all.Go(func() {
					if _, err := get(t.Context()); !errors.Is(err, memoize.ErrReentrant) {
						t.Errorf("%s: %v", way, err)
					}
				})
			}
			all.Wait()
		}
	})
}

func TestUsingAnotherGetterIsNoCircle(t *testing.T) {
	base := memoize.Func(func(context.Context) (int, error) { return 40, nil })
	one := memoize.Value(func() (int, error) { return base(context.Background()) })
	top := memoize.Func(func(ctx context.Context) (int, error) {
		x, errX := one()
		y, errY := base(ctx)
		return x + y, errors.Join(errX, errY)
	})
	if v, err := top(t.Context()); v != 80 || err != nil {
		t.Error(v, err)
	}
}

// A call that was left closes no circle any more.
func TestFlightThatWaitsNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b func(context.Context) (int, error)
		a = memoize.Func(func(ctx context.Context) (int, error) {
			impatient, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if _, err := b(impatient); !errors.Is(err, context.DeadlineExceeded) {
				return 0, err
			}
			time.Sleep(time.Minute)
			return 1, nil
		})
		b = memoize.Func(func(ctx context.Context) (int, error) {
			time.Sleep(30 * time.Second)
			v, err := a(ctx)
			return v + 1, err
		})
		_, aReturned := begin(t.Context(), a)
		if v, err := b(t.Context()); v != 2 || err != nil {
			t.Error(v, err)
		}
		<-aReturned
	})
}

// Many flights that all wait for all the ones before them: the search for a circle must
// not walk every path through them, of which there are 2^60.
func TestSearchForACircleIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		getters := make([]func(context.Context) (int, error), 60)
		for i := range getters {
			getters[i] = memoize.Func(func(ctx context.Context) (int, error) {
				if i == 0 {
					time.Sleep(time.Second)
				}
				var all sync.WaitGroup
				for _, before := range getters[:i] {
					all.Go(func() { _, _ = before(ctx) })
				}
				all.Wait()
				return i, nil
			})
			begin(t.Context(), getters[i])
		}
		for i, get := range getters {
			if v, err := get(t.Context()); v != i || err != nil {
				t.Error(v, err)
			}
		}
	})
}

// What was refused within a flight is allowed again after it: a goroutine that the
// function left behind, with the flight's context.
func TestContextOfAFlightThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var old context.Context
		get := memoize.Func(func(ctx context.Context) (int, error) {
			if old == nil {
				old = context.WithoutCancel(ctx)
				return 0, errDown
			}
			return 42, nil
		})
		_, _ = get(t.Context())
		if v, err := get(old); v != 42 || err != nil {
			t.Error(v, err)
		}
	})
}

func TestNothingIsRetainedAfterAFlight(t *testing.T) {
	type big struct{ _ [1 << 20]byte }
	freed := make(chan struct{})
	get := func() func(context.Context) (int, error) {
		held := new(big)
		runtime.AddCleanup(held, func(struct{}) { close(freed) }, struct{}{})
		return memoize.Func(func(context.Context) (int, error) { runtime.KeepAlive(held); return 1, nil })
	}()
	_, _ = get(t.Context())
	for range 1000 {
		runtime.GC()
		select {
		case <-freed:
			_, _ = get(t.Context()) // the getter itself is still in use
			return
		default:
		}
	}
	t.Error("the function is kept together with its value")
}

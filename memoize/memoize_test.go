package memoize_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx/memoize"
)

var errDown = errors.New("down")

// outcome is what one call of a getter came to.
type outcome struct {
	value    int
	err      error
	panicked *memoize.PanicError
}

func outcomeOf(call func() (int, error)) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			o.panicked = p.(*memoize.PanicError)
		}
	}()
	o.value, o.err = call()
	return o
}

// together lets n callers share one flight, and returns what each came to. It must be
// called in a bubble.
func together(n int, get func(context.Context) (int, error)) []outcome {
	outcomes := make([]outcome, n)
	var all sync.WaitGroup
	for i := range outcomes {
		all.Go(func() {
			outcomes[i] = outcomeOf(func() (int, error) { return get(context.Background()) })
		})
	}
	all.Wait()
	return outcomes
}

func TestSuccessIsComputedOnceAndKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		get := memoize.Func(func(context.Context) (int, error) {
			runs++
			time.Sleep(time.Second)
			return 42, nil
		})
		for _, o := range append(together(10, get), together(10, get)...) {
			if o != (outcome{value: 42}) {
				t.Errorf("got %+v", o)
			}
		}
		time.Sleep(100 * 365 * 24 * time.Hour)
		if v, err := get(t.Context()); v != 42 || err != nil || runs != 1 {
			t.Errorf("after a century: %v, %v, in %d runs", v, err, runs)
		}
	})
}

// A caller may find no value, and then no flight either: the one that kept the value
// landed in between.
func TestSuccessIsComputedOnceByManyAtOnce(t *testing.T) {
	for range 2000 {
		var runs atomic.Int32
		get := memoize.Func(func(context.Context) (int, error) { return int(runs.Add(1)), nil })
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if v, err := get(t.Context()); v != 1 || err != nil {
					t.Errorf("got %v, %v", v, err)
				}
			})
		}
		all.Wait()
	}
}

func TestNilAndZeroAreValues(t *testing.T) {
	runs := 0
	zero := memoize.Func(func(context.Context) (int, error) { runs++; return 0, nil })
	pointer := memoize.Value(func() (*int, error) { runs++; return nil, nil })
	failure := memoize.Value(func() (error, error) { runs++; return nil, nil })
	for range 3 {
		if v, err := zero(t.Context()); v != 0 || err != nil {
			t.Error(v, err)
		}
		if v, err := pointer(); v != nil || err != nil {
			t.Error(v, err)
		}
		if v, err := failure(); v != nil || err != nil {
			t.Error(v, err)
		}
	}
	if runs != 3 {
		t.Errorf("%d runs of 3 functions", runs)
	}
}

// ways returns a getter by each of the two ways in: they keep the same promises to
// callers that come together. The function behind a getter first fails, then gives 42.
func ways(fail func() (int, error)) map[string]func(context.Context) (int, error) {
	fn, value := flaky(fail), memoize.Value(flaky(fail))
	return map[string]func(context.Context) (int, error){
		"Func":  memoize.Func(func(context.Context) (int, error) { return fn() }),
		"Value": func(context.Context) (int, error) { return value() },
	}
}

// flaky returns a function that ends a second after its call: the first time by fail,
// then with 42.
func flaky(fail func() (int, error)) func() (int, error) {
	runs := 0
	return func() (int, error) {
		time.Sleep(time.Second)
		if runs++; runs == 1 {
			return fail()
		}
		return 42, nil
	}
}

func TestCase_M01_PanicReachesEveryCallerAndIsNotKept(t *testing.T) {
	for way, get := range ways(func() (int, error) { panic(errDown) }) {
		synctest.Test(t, func(t *testing.T) {
			for _, o := range together(5, get) {
				p := o.panicked
				if p == nil || p.Value != any(errDown) || !errors.Is(p, errDown) {
					t.Fatalf("%s: %+v; want a panic with %v", way, o, errDown)
				}
				if !strings.Contains(string(p.Stack), "PanicReachesEveryCaller") || !strings.Contains(p.Error(), "down") {
					t.Errorf("%s: the panic does not show where it came from:\n%v", way, p)
				}
			}
			if v, err := get(t.Context()); v != 42 || err != nil {
				t.Errorf("%s: next call: %v, %v", way, v, err)
			}
		})
	}
}

func TestCase_M01_PanicWithNilIsNoResult(t *testing.T) {
	get := memoize.Value(func() (int, error) { panic(nil) })
	o := outcomeOf(get)
	if o.panicked == nil || o.err != nil {
		t.Errorf("%+v", o)
	}
}

func TestCase_M01_GoexitReachesEveryCallerAndIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := flaky(func() (int, error) { runtime.Goexit(); return 0, nil })
		get := memoize.Func(func(context.Context) (int, error) { return fn() })
		for _, o := range together(5, get) {
			if o != (outcome{err: memoize.ErrGoexit}) {
				t.Errorf("%+v", o)
			}
		}
		if v, err := get(t.Context()); v != 42 || err != nil {
			t.Errorf("next call: %v, %v", v, err)
		}
	})
}

func TestCase_M01_GoexitOfAValueEndsItsOwnGoroutineOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		get := memoize.Value(flaky(func() (int, error) { runtime.Goexit(); return 0, nil }))
		var returned, told atomic.Int32
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				v, err := get()
				returned.Add(1)
				if v == 0 && errors.Is(err, memoize.ErrGoexit) {
					told.Add(1)
				}
			})
		}
		all.Wait()
		if returned.Load() != 4 || told.Load() != 4 {
			t.Errorf("%d callers returned and %d were told; want 4 and 4", returned.Load(), told.Load())
		}
		if v, err := get(); v != 42 || err != nil {
			t.Errorf("next call: %v, %v", v, err)
		}
	})
}

func TestCase_M02_JoinersOfAFailedFlightGetItsError(t *testing.T) {
	for way, get := range ways(func() (int, error) { return 7, errDown }) {
		synctest.Test(t, func(t *testing.T) {
			for _, o := range together(5, get) {
				if o.err != errDown { //nolint:errorlint // as it is, not wrapped
					t.Errorf("%s: %+v", way, o)
				}
			}
		})
	}
}

func TestCase_M03_FailureIsNotKept(t *testing.T) {
	for way, get := range ways(func() (int, error) { return 0, errDown }) {
		synctest.Test(t, func(t *testing.T) {
			if _, err := get(t.Context()); !errors.Is(err, errDown) {
				t.Errorf("%s: first call: %v", way, err)
			}
			for range 2 {
				if v, err := get(t.Context()); v != 42 || err != nil {
					t.Errorf("%s: next call: %v, %v", way, v, err)
				}
			}
		})
	}
}

func TestNilFunctionPanicsAtOnce(t *testing.T) {
	for name, build := range map[string]func(){
		"Func":  func() { memoize.Func[int](nil) },
		"Value": func() { memoize.Value[int](nil) },
	} {
		func() {
			defer func() {
				if p, _ := recover().(string); !strings.Contains(p, name+" of a nil function") {
					t.Errorf("%s: panic %q", name, p)
				}
			}()
			build()
		}()
	}
}

func BenchmarkHit(b *testing.B) {
	ctx := b.Context()
	hits := map[string]func(){}
	fn, value := memoize.Func(func(context.Context) (int, error) { return 1, nil }), memoize.Value(func() (int, error) { return 1, nil })
	once := sync.OnceValue(func() int { return 1 })
	hits["Func"] = func() { _, _ = fn(ctx) }
	hits["Value"] = func() { _, _ = value() }
	hits["sync.OnceValue"] = func() { _ = once() }
	for name, hit := range hits {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				hit()
			}
		})
	}
}

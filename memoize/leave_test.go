package memoize_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx/memoize"
)

type userKey struct{}

// begin calls get on a goroutine of its own and returns once that waits. result is
// closed when the call returns.
func begin(ctx context.Context, get func(context.Context) (int, error)) (result *outcome, returned <-chan struct{}) {
	result, done := new(outcome), make(chan struct{})
	go func() {
		defer close(done)
		*result = outcomeOf(func() (int, error) { return get(ctx) })
	}()
	synctest.Wait()
	return result, done
}

func TestCallerLeavesAtOnceAndTheOthersStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		get := memoize.Func(func(ctx context.Context) (int, error) {
			select {
			case <-time.After(time.Minute):
				return 42, nil
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
		})
		start, errHurry := time.Now(), errors.New("no time")
		first, leave := context.WithCancelCause(t.Context())
		gone, goneReturned := begin(first, get)
		stayed, stayedReturned := begin(t.Context(), get)
		leave(errHurry)
		<-goneReturned
		if waited := time.Since(start); waited != 0 {
			t.Errorf("left after %v", waited)
		}
		if !errors.Is(gone.err, context.Canceled) || !errors.Is(gone.err, errHurry) || gone.value != 0 {
			t.Errorf("who left got %+v", *gone)
		}
		<-stayedReturned
		if *stayed != (outcome{value: 42}) {
			t.Errorf("who stayed got %+v", *stayed)
		}
	})
}

func TestFlightOutlivesItsFirstCallersDeadlineAndKeepsItsValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		get := memoize.Func(func(ctx context.Context) (int, error) {
			time.Sleep(time.Minute)
			if _, limited := ctx.Deadline(); limited || ctx.Err() != nil {
				return 0, errors.New("the first caller's deadline is the flight's")
			}
			return ctx.Value(userKey{}).(int), nil
		})
		first, cancel := context.WithTimeout(context.WithValue(t.Context(), userKey{}, 7), time.Second)
		defer cancel()
		gone, goneReturned := begin(first, get)
		stayed, stayedReturned := begin(context.WithValue(t.Context(), userKey{}, 8), get)
		<-goneReturned
		<-stayedReturned
		if !errors.Is(gone.err, context.DeadlineExceeded) || *stayed != (outcome{value: 7}) {
			t.Errorf("first %+v, second %+v", *gone, *stayed)
		}
	})
}

func TestFlightIsCancelledWhenTheLastCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var causes []error
		get := memoize.Func(func(ctx context.Context) (int, error) {
			<-ctx.Done()
			causes = append(causes, context.Cause(ctx))
			return 0, ctx.Err()
		})
		first, leaveFirst := context.WithCancel(t.Context())
		second, leaveSecond := context.WithCancel(t.Context())
		_, firstReturned := begin(first, get)
		_, secondReturned := begin(second, get)
		leaveFirst()
		<-firstReturned
		synctest.Wait()
		if len(causes) != 0 {
			t.Error("cancelled while a caller waits")
		}
		leaveSecond()
		<-secondReturned
		synctest.Wait()
		if len(causes) != 1 || !errors.Is(causes[0], memoize.ErrAbandoned) {
			t.Errorf("causes %v; want ErrAbandoned", causes)
		}
	})
}

// A flight that is on its way down is not shared: its error is no fault of who comes
// now. There is still one flight at a time.
func TestCallAfterTheLastOneLeftBeginsAnew(t *testing.T) {
	for _, late := range []struct {
		name  string
		value int
		err   error
		want  int
	}{
		{"the old flight fails", 0, errDown, 2},
		{"the old flight succeeds after all", 1, nil, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			start, runs, flying := time.Now(), 0, 0
			get := memoize.Func(func(context.Context) (int, error) {
				if flying++; flying > 1 {
					t.Error("two flights at once")
				}
				defer func() { flying-- }()
				runs++
				run := runs
				time.Sleep(time.Minute) // whatever its context says
				if run == 1 {
					return late.value, late.err
				}
				return run, nil
			})
			first, leave := context.WithCancel(t.Context())
			_, returned := begin(first, get)
			leave()
			<-returned
			impatient, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := get(impatient); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
				t.Errorf("%s: who waits for the old flight can't leave: %v", late.name, err)
			}
			if v, err := get(t.Context()); v != late.want || err != nil {
				t.Errorf("%s: got %v, %v; want %v", late.name, v, err, late.want)
			}
		})
	}
}

func TestContextThatIsOverBeginsNothing(t *testing.T) {
	runs := 0
	get := memoize.Func(func(context.Context) (int, error) { runs++; return 42, nil })
	dead, cancel := context.WithCancel(t.Context())
	cancel()
	if v, err := get(dead); v != 0 || !errors.Is(err, context.Canceled) || runs != 0 {
		t.Errorf("%v, %v, %d runs", v, err, runs)
	}
	_, _ = get(t.Context())
	if v, err := get(dead); v != 42 || err != nil {
		t.Errorf("a value that is there: %v, %v", v, err)
	}
}

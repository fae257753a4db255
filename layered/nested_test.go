package layered

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
)

// A call inside of the action would wait for the call around it, which waits for it.
func TestNestedCall_OfAHeldLayerIsRefusedAtOnce(t *testing.T) {
	file := WithFile(t.TempDir() + "/file")
	dir := WithDir(t.TempDir())
	for name, tt := range map[string]struct{ outer, inner []Option }{
		"the key":                     {[]Option{WithKey("k"), dir}, []Option{WithKey("k"), dir}},
		"the key, by the memory":      {[]Option{WithKey("k"), onlyIn(LayerMemory)}, []Option{WithKey("k"), onlyIn(LayerMemory)}},
		"the key, by another Locker":  {[]Option{WithKey("k"), dir}, []Option{WithKey("k"), dir, WithLocker(newLocker(t))}},
		"the file, by another key":    {[]Option{WithKey("k"), file}, []Option{WithKey("j"), file}},
		"the directory, by poll":      {[]Option{WithKey("k"), dir, onlyIn(LayerPoll)}, []Option{WithKey("k"), dir, onlyIn(LayerPoll)}},
		"an attempt":                  {[]Option{WithKey("k"), dir}, []Option{WithKey("k"), dir, WithTimeout(0)}},
		"an attempt without an error": {[]Option{WithKey("k"), dir}, []Option{WithKey("k"), dir, WithTimeoutResult(0)}},
	} {
		synctest.Test(t, func(t *testing.T) {
			inner := func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				_, err := WithLock(ctx, 0, nothing[int], tt.inner...)
				return err
			}
			began := time.Now()
			check := func(where string, err error) {
				var refusal *lockfx.NotAcquiredError
				if !errors.As(err, &refusal) || !refusal.Nested || !refusal.Self || time.Since(began) != 0 {
					t.Errorf("%s, %s: after %v: %v", name, where, time.Since(began), err)
				}
			}
			_, err := WithLock(t.Context(), 0, func(ctx context.Context, _ Call[int]) (int, error) {
				check("in the action", inner(ctx))
				// A lock in between does not hide it.
				_, err := WithLock(ctx, 0, func(ctx context.Context, _ Call[int]) (int, error) {
					return 0, inner(ctx)
				}, WithKey("in between"), dir)
				check("two deep", err)
				return 0, nil
			}, append(tt.outer, WithPredicate(func(ctx context.Context, call Call[int]) (bool, error) {
				if call.State == StatePredicateAfter {
					check("in the predicate", inner(ctx))
				}
				return true, nil
			}))...)
			must(t, err)
			files.CloseIdle()
		})
	}
}

func TestNestedCall_OfWhatIsNotHeldIsServed(t *testing.T) {
	dir, one, two := WithDir(t.TempDir()), newLocker(t), newLocker(t)
	for name, tt := range map[string]struct{ outer, inner []Option }{
		"another key":             {[]Option{WithKey("k"), dir}, []Option{WithKey("j"), dir}},
		"another namespace":       {[]Option{WithKey("k"), dir}, []Option{WithKey("k"), dir, WithNamespace("n")}},
		"another Locker's memory": {[]Option{WithKey("k"), onlyIn(LayerMemory), WithLocker(one)}, []Option{WithKey("k"), onlyIn(LayerMemory), WithLocker(two)}},
		"other layers":            {[]Option{WithKey("k"), dir, onlyIn(LayerFlock)}, []Option{WithKey("k"), dir, onlyIn(LayerPoll)}},
	} {
		var late context.Context
		_, err := WithLock(t.Context(), 0, func(ctx context.Context, _ Call[int]) (int, error) {
			late = context.WithoutCancel(ctx)
			_, err := WithLock(ctx, 0, nothing[int], tt.inner...)
			return 0, err
		}, tt.outer...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		// What was started in the action may go on after it.
		if _, err := WithLock(late, 0, nothing[int], tt.outer...); err != nil {
			t.Errorf("%s, when the call is over: %v", name, err)
		}
	}
	files.CloseIdle()
}

func TestNestedCall_MayFollowAFailedCheck(t *testing.T) {
	opts, _ := everything(t)
	_, err := WithLock(t.Context(), "in", nothing[string], append(opts,
		WithPredicate(func(_ context.Context, call Call[string]) (bool, error) {
			return call.State == StatePredicateBefore, nil
		}),
		WithOnCheckFailed(func(ctx context.Context, _ Call[string]) error {
			_, err := WithLock(ctx, "in", nothing[string], opts...)
			return err
		}))...)
	must(t, err)
}

func TestEndOfTheContext_MatchesItsErrorAndItsCause(t *testing.T) {
	gone := errors.New("gone")
	causes := map[string]struct {
		ctx  func(context.Context) (context.Context, context.CancelFunc)
		want []error
	}{
		"cancelled with a cause": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(gone) }
		}, []error{context.Canceled, gone}},
		"cancelled": {context.WithCancel, []error{context.Canceled}},
		"disposed of by the caller's own lock": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(lockfx.ErrDisposed) }
		}, []error{context.Canceled, lockfx.ErrDisposed}},
		"timed out with a cause": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithTimeoutCause(ctx, time.Millisecond, gone)
			return ctx, func() { <-ctx.Done(); cancel() }
		}, []error{context.DeadlineExceeded, gone}},
	}
	for name, tt := range causes {
		for l := range Layer(layers) {
			opts, p := everything(t)
			opts = append(opts, onlyIn(l))
			free := p.contend(l)
			ctx, cancel := tt.ctx(t.Context())
			waited := make(chan error)
			go func() {
				_, err := WithLock(ctx, "in", nothing[string], opts...)
				waited <- err
			}()
			cancel()
			err := <-waited
			_, late := WithLock(ctx, "in", nothing[string], opts...)
			for _, want := range tt.want {
				if !errors.Is(err, want) || !errors.Is(late, want) {
					t.Errorf("%s at %v: %v, and of a dead context %v; want %v in both", name, l, err, late, want)
				}
			}
			free()
		}
	}
	eventually(t, "no thread sleeps", func() bool { return files.Parked() == 0 })
}

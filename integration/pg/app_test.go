package pg_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
	"github.com/lockfx/lockfx/integration/pgserver"
	"github.com/lockfx/lockfx/pgstore"
)

// order notes what happens, in order.
type order struct {
	mu   sync.Mutex
	seen []string
}

func (o *order) note(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, what)
}

// A whole application whose pool closes in OnStop stops under a running body: the
// lease is given back and the lock disposed of while the pool is open.
func TestCase_S02_ThePoolClosesAfterTheLock(t *testing.T) {
	s := shared(t)
	var o order
	var lock *fxlock.Lock
	newPool := func(lc fx.Lifecycle) (*pgxpool.Pool, error) {
		pool, err := pgxpool.New(context.Background(), pgserver.URL(s.Addr()))
		if err != nil {
			return nil, err
		}
		lc.Append(fx.StartStopHook(
			func(ctx context.Context) error { return pgstore.Migrate(ctx, pool) },
			func() {
				pool.Close()
				o.note("pool closed")
			},
		))
		return pool, nil
	}
	app := fx.New(fx.NopLogger, fx.Provide(newPool), fx.Populate(&lock),
		fxlock.Module("nightly",
			fxlock.StoreFrom(pgstore.From),
			fxlock.Observer(func(e lockfx.Event) {
				if e.Err != nil {
					t.Error(e)
				}
				o.note(e.Kind.String())
			}),
		))
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	begun := make(chan struct{})
	ran := start(func() (bool, error) {
		return true, lock.Do(context.Background(), func(ctx context.Context, _ lockfx.Holder) error {
			close(begun)
			<-ctx.Done()
			return nil
		})
	})
	<-begun
	if err := app.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if got := <-ran; got.err != nil && !errors.Is(got.err, lockfx.ErrDisposed) {
		t.Error(got.err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if want := []string{"acquired", "released", "disposed", "pool closed"}; !slices.Equal(o.seen, want) {
		t.Errorf("%q, want %q", o.seen, want)
	}
	e := over(t, s, nil)
	e.table = "lockfx_leases"
	grants(t, e.store(t), "nightly", time.Minute)
}

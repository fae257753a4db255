package pg_test

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/crash"
	"github.com/lockfx/lockfx/integration/pgserver"
	"github.com/lockfx/lockfx/pgstore"
)

func TestMain(m *testing.M) {
	crash.Child(openPlace)
	goleak.VerifyTestMain(withServer{m})
}

// withServer stops the server that the tests share.
type withServer struct{ tests *testing.M }

func (w withServer) Run() int {
	code := w.tests.Run()
	if s := started.Load(); s != nil {
		s.Stop()
	}
	return code
}

// quick keeps what survives the death of a server, though not of the machine.
const quick = "-cfsync=off"

var (
	started     atomic.Pointer[pgserver.Server]
	startShared = sync.OnceValues(func() (*pgserver.Server, error) {
		s, err := pgserver.Start(context.Background(), quick)
		started.Store(s)
		return s, err
	})
)

// shared returns the server for tests that leave it as it is.
func shared(t testing.TB) *pgserver.Server {
	t.Helper()
	s, err := startShared()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// place says where a store is, so that another process can open it.
type place struct {
	URL   string
	Table string
}

func (p place) String() string {
	text, err := json.Marshal(p)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func openPlace(ctx context.Context, text string) (lockfx.Store, error) {
	var p place
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, p.URL)
	if err != nil {
		return nil, err
	}
	return pgstore.New(pool, pgstore.WithTable(p.Table))
}

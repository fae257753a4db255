package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/fx"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
	"github.com/lockfx/lockfx/integration/pgserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The wiring is right, without a database.
func TestWiring(t *testing.T) {
	if err := fxlock.Validate(service("", "")); err != nil {
		t.Error(err)
	}
}

// replica is one running service.
type replica struct {
	app    *fx.App
	server *Server
	leads  *fxlock.Leadership
	pool   *pgxpool.Pool
}

func start(t *testing.T, database string) *replica {
	t.Helper()
	r := &replica{}
	r.app = fx.New(fx.NopLogger, service(database, "127.0.0.1:0"),
		fx.Decorate(zap.NewNop),
		fx.Populate(&r.server, &r.pool, fx.Annotate(&r.leads, fx.ParamTags(`name:"dispatcher"`))))
	if err := r.app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *replica) post(t *testing.T, path string, values url.Values) {
	t.Helper()
	answer, err := http.PostForm("http://"+r.server.Addr+path, values)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // read to its end
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
		t.Errorf("POST %s: %d %s", path, answer.StatusCode, text)
	}
}

// until waits for a query to return true.
func (r *replica) until(t *testing.T, query string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ok := false; !ok; {
		if err := r.pool.QueryRow(ctx, query, args...).Scan(&ok); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
}

// Two replicas over one database: both migrate, one leads, each can write the report, and a
// leader that stops is succeeded at once.
func TestService(t *testing.T) {
	db, err := pgserver.Start(t.Context(), "-cfsync=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Stop)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	first, second := start(t, pgserver.URL(db.Addr())), start(t, pgserver.URL(db.Addr()))

	first.post(t, "/orders", url.Values{"amount": {"40"}})
	second.post(t, "/orders", url.Values{"amount": {"2"}})
	first.until(t, `SELECT bool_and(dispatched) FROM orders`)
	second.post(t, "/nightly", nil)
	first.until(t, `SELECT total = 42 AND fence > 0 FROM report`)

	// A token of a lease that has passed on changes nothing.
	if err := writeReport(t.Context(), 1, first.pool); !errors.Is(err, lockfx.ErrStaleToken) {
		t.Errorf("a stale write: %v", err)
	}

	leader, other := first, second
	if second.leads.IsLeader() {
		leader, other = second, first
	}
	elected := make(chan struct{}, 1)
	stop := other.leads.Subscribe(func(e fxlock.LeadershipEvent) {
		if e.Change == fxlock.LeadershipElected {
			elected <- struct{}{}
		}
	})
	defer stop()
	if err := leader.app.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	<-elected
	other.post(t, "/orders", url.Values{"amount": {"1"}})
	other.until(t, `SELECT bool_and(dispatched) FROM orders`)
	if err := other.app.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

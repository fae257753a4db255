package main

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// Server is the HTTP server. It takes a Migrated, so it listens after the migration.
type Server struct {
	pool    *pgxpool.Pool
	nightly Nightly
	http.Server
}

func newServer(lc fx.Lifecycle, c Config, pool *pgxpool.Pool, nightly Nightly, leads struct {
	fx.In
	Dispatcher *fxlock.Leadership `name:"dispatcher"`
}, _ Migrated,
) *Server {
	s := &Server{pool: pool, nightly: nightly}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", s.order)
	mux.HandleFunc("POST /nightly", func(w http.ResponseWriter, r *http.Request) { answer(w, s.nightly(r.Context())) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { answer(w, leads.Dispatcher.Ready(r.Context())) })
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, r *http.Request) { answer(w, leads.Dispatcher.Live(r.Context())) })
	requests, end := context.WithCancelCause(context.Background())
	s.Handler, s.BaseContext = mux, func(net.Listener) context.Context { return requests }
	lc.Append(fx.StartStopHook(func() error {
		listener, err := net.Listen("tcp", c.Listen)
		if err == nil {
			s.Addr = listener.Addr().String()
			go s.Serve(listener) //nolint:errcheck // it ends with Shutdown
		}
		return err
	}, func(ctx context.Context) error {
		end(lockfx.ErrDisposed) // runs and waits of requests end now
		return s.Shutdown(ctx)
	}))
	return s
}

func (s *Server) order(w http.ResponseWriter, r *http.Request) {
	_, err := s.pool.Exec(r.Context(), `INSERT INTO orders (amount) VALUES ($1)`, r.FormValue("amount"))
	answer(w, err)
}

func answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}

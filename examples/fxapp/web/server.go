package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
)

// grace is how long connections may take to end at a stop.
const grace = 500 * time.Millisecond

// Server is the HTTP server of a replica.
type Server struct {
	http     *http.Server
	listener net.Listener // once the application has started
	ended    chan error   // capacity 1: why it serves no more
}

func newServer(lc fx.Lifecycle, config Config, endpoints []endpoint, logger *zap.Logger) *Server {
	mux := http.NewServeMux()
	for _, e := range endpoints {
		mux.Handle(e.pattern, e)
	}
	requests, endRequests := context.WithCancelCause(context.Background())
	s := &Server{
		http: &http.Server{
			Handler:           mux,
			ReadHeaderTimeout: 5 * time.Second,
			BaseContext:       func(net.Listener) context.Context { return requests },
			ErrorLog:          zap.NewStdLog(logger.Named("http")),
		},
		ended: make(chan error, 1),
	}
	lc.Append(fx.Hook{
		OnStart: func(ctx context.Context) (err error) {
			s.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", config.Address)
			if err != nil {
				return fmt.Errorf("serve HTTP: %w", err)
			}
			go s.serve()
			return nil
		},
		OnStop: func(ctx context.Context) error {
			endRequests(lockfx.ErrDisposed) // a report under way ends now, and its request is answered
			return s.shutdown(ctx)
		},
	})
	return s
}

// Addr returns the address that the server listens on, once it has started.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// shutdown leaves most of the time that there is to those who stop after it: fx
// skips them when it is over. Requests end at once, but a connection that has not
// sent one yet would be waited for.
func (s *Server) shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	for range s.ended { // at once: it serves no more
	}
	return err
}

// Failed returns a channel that gives an error if the server ends by itself, and
// closes when it was stopped.
func (s *Server) Failed() <-chan error { return s.ended }

func (s *Server) serve() {
	defer close(s.ended)
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		s.ended <- fmt.Errorf("serve HTTP: %w", err)
	}
}

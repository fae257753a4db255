package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// serve is one replica with an HTTP server, until ctx ends.
func (w *world) serve(ctx context.Context, address string) error {
	r := w.newReporter(w.name, fx.Supply(fx.Annotate(address, fx.ResultTags(`name:"address"`))),
		fx.Provide(newHandler), fx.Invoke(fx.Annotate(w.listen, fx.ParamTags("", `name:"address"`))))
	if err := r.start(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	return r.stop()
}

// newHandler takes the report as a function, and the lock to show its state.
func newHandler(report Report, lock *fxlock.Lock) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /report", func(w http.ResponseWriter, r *http.Request) {
		err := report(r.Context())
		var busy *lockfx.NotAcquiredError
		switch {
		case errors.As(err, &busy):
			http.Error(w, err.Error(), http.StatusConflict)
		case errors.Is(err, lockfx.ErrDisposed):
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			_, _ = fmt.Fprintln(w, "written")
		}
	})
	mux.HandleFunc("GET /lock", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "%s: %v, token %d\n", lock.Key(), lock.State(), lock.Token())
	})
	return mux
}

// listen starts and stops the server. It was built with the handler, so fx stops it before
// the report and the lock.
func (w *world) listen(lc fx.Lifecycle, address string, handler http.Handler) {
	server := &http.Server{Handler: handler}
	lc.Append(fx.StartStopHook(func() error {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		w.out.say(w.name, "listens on http://%s", listener.Addr())
		go server.Serve(listener) //nolint:errcheck // it ends with Shutdown
		return nil
	}, server.Shutdown))
}

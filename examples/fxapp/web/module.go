// Package web is the HTTP face of a replica: it runs the report on demand and shows
// the lock and the report.
//
//	POST /run      writes the report; 409 if somebody else does, 503 while stopping
//	GET  /lock     the state of the lock, here and at the store
//	GET  /report   the report
//	GET  /healthz  200, or 503 while stopping
package web

import (
	"encoding/json"
	"net/http"

	"go.uber.org/fx"
)

// Config is what the server is told.
type Config struct {
	Address    string // to listen on, as host:port; port 0 stands for a free one
	Lock       string // the name of the lock
	ReportFile string
}

// Module serves HTTP while the application runs. It takes the report's function,
// the lock, the store and a [Config].
var Module = fx.Module("web",
	fx.Provide(
		route(newRunHandler),
		route(newLockHandler),
		route(newReportHandler),
		route(newHealthHandler),
	),
	fx.Provide(fx.Annotate(newServer, fx.ParamTags("", "", `group:"routes"`))),
	fx.Invoke(func(*Server) {}), // whether or not somebody asks for its address
)

// endpoint is a handler and the pattern that it serves, as http.ServeMux reads it.
type endpoint struct {
	pattern string
	http.Handler
}

func route(constructor any) any {
	return fx.Annotate(constructor, fx.ResultTags(`group:"routes"`))
}

// answer sends body as JSON.
func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone: there is nobody to tell
}

// fault is the answer to a request that could not be served.
type fault struct {
	Error string `json:"error"`
}

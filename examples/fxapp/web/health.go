package web

import "net/http"

// health is the answer of a replica that takes requests.
type health struct {
	Status string `json:"status"`
}

func newHealthHandler() endpoint {
	return endpoint{"GET /healthz", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Err() != nil { // all requests end when the server stops
			answer(w, http.StatusServiceUnavailable, health{"stopping"})
			return
		}
		answer(w, http.StatusOK, health{"ok"})
	})}
}

package web

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
)

// newReportHandler shows the report: the old one or the new one, never a part.
func newReportHandler(config Config) endpoint {
	return endpoint{"GET /report", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, err := os.Open(config.ReportFile)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			answer(w, http.StatusNotFound, fault{"no report was written yet: POST /run"})
			return
		case err != nil:
			answer(w, http.StatusInternalServerError, fault{err.Error()})
			return
		}
		defer func() { _ = file.Close() }()
		info, err := file.Stat()
		if err != nil {
			answer(w, http.StatusInternalServerError, fault{err.Error()})
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		http.ServeContent(w, r, "", info.ModTime(), file)
	})}
}

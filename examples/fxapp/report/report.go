package report

import (
	"strings"
	"time"

	"github.com/lockfx/lockfx/examples/fxapp/accesslog"
)

// Report adds up the entries of one log. Its memory grows with the number of
// distinct hosts and paths, not with the length of the log. It is not safe for
// concurrent use.
type Report struct {
	first, last time.Time
	requests    int64
	bytes       int64
	odd         int64     // requests whose request line is none of HTTP
	classes     [10]int64 // by the first digit of the status
	hours       [24]int64 // by the hour of day as the log writes it
	hosts       tally
	paths       tally // without the query
}

// New returns an empty report.
func New() *Report { return &Report{hosts: tally{}, paths: tally{}} }

// Add counts one entry. It keeps none of the entry's memory.
func (r *Report) Add(e accesslog.Entry) {
	if r.requests == 0 || e.Time.Before(r.first) {
		r.first = e.Time
	}
	if r.requests == 0 || e.Time.After(r.last) {
		r.last = e.Time
	}
	r.requests++
	r.bytes += e.Bytes
	r.classes[e.Status/100%10]++
	r.hours[e.Time.Hour()]++
	r.hosts.add(e.Host)
	if e.Path == "" {
		r.odd++
		return
	}
	path, _, _ := strings.Cut(e.Path, "?")
	r.paths.add(path)
}

// errors returns how many requests were answered with a status of 4xx or 5xx.
func (r *Report) errors() int64 { return r.classes[4] + r.classes[5] }

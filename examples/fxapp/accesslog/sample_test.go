package accesslog_test

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfx/lockfx/examples/fxapp/accesslog"
)

const sample = "../testdata/access.log"

func openSample(tb testing.TB) *os.File {
	tb.Helper()
	f, err := os.Open(sample)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = f.Close() })
	return f
}

// The sample holds what its generator promises: one day, a dozen malformed lines
// of different kinds, and nobody's address.
func TestSample(t *testing.T) {
	documentation := []netip.Prefix{
		netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.51.100.0/24"),
		netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:db8::/32"),
	}
	var last time.Time
	stats, err := accesslog.Read(t.Context(), openSample(t), accesslog.Options{Samples: 100}, func(e accesslog.Entry) error {
		addr, err := netip.ParseAddr(e.Host)
		if err != nil || !slices.ContainsFunc(documentation, func(p netip.Prefix) bool { return p.Contains(addr) }) {
			t.Errorf("host %q is not an address for documentation", e.Host)
		}
		if e.Time.Format(time.DateOnly) != "2026-03-14" || e.Time.Before(last) {
			t.Errorf("time %v is of another day or out of order", e.Time)
		}
		if _, site, found := strings.Cut(e.Referer, "://"); found && !strings.Contains(site, "example.com/") {
			t.Errorf("referer %q is a real site", e.Referer)
		}
		last = e.Time
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if stats.Lines != 4000 || stats.Malformed != 12 || len(stats.Samples) != 12 {
		t.Errorf("got %d lines, %d malformed", stats.Lines, stats.Malformed)
	}
	reasons := map[string]bool{}
	for _, m := range stats.Samples {
		field, _, _ := strings.Cut(m.Reason, " ")
		reasons[field] = true
	}
	if len(reasons) < 7 {
		t.Errorf("malformed lines of %d kinds only: %v", len(reasons), stats.Samples)
	}
}

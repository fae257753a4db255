package measure

import (
	"strconv"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
)

// ManyRenewer is a store that renews many leases at once.
type ManyRenewer interface {
	lockfx.Store
	lockfx.ManyRenewer
}

// RenewMany reports the wall time of one renewal among a thousand.
func RenewMany(b *testing.B, store ManyRenewer) {
	b.Helper()
	const held = 1000
	renewals := make([]lockfx.Renewal, held)
	for i := range renewals {
		key := "lock " + strconv.Itoa(i)
		g := Must[lockfx.Grant](b)(store.Acquire(b.Context(), key, time.Hour))
		renewals[i] = lockfx.Renewal{Key: key, Token: g.Token, TTL: time.Hour}
	}
	var took []float64
	for b.Loop() {
		begin := time.Now()
		for _, r := range store.RenewMany(b.Context(), renewals) {
			if !r.OK {
				b.Fatal("not renewed: ", r.Err)
			}
		}
		took = append(took, float64(time.Since(begin)))
	}
	b.ReportMetric(median(took)/held, "ns/renewal")
}

package storemodel

import (
	"sync/atomic"
	"time"
)

// Epoch is where a Clock starts.
var Epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Clock moves when it is told to. The zero Clock is ready, and safe for concurrent use.
type Clock struct{ sinceEpoch atomic.Int64 }

// Now returns the present of c.
func (c *Clock) Now() time.Time { return Epoch.Add(time.Duration(c.sinceEpoch.Load())) }

// Advance sets c forward.
func (c *Clock) Advance(d time.Duration) { c.sinceEpoch.Add(int64(d)) }

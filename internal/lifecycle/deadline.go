package lifecycle

import "time"

// margin is what a holder takes off its lease for clocks that run at different
// rates: a hundredth of the ttl and 2 ms, but at most a tenth of the ttl. Quartz
// clocks differ by some parts in ten thousand, and a clock that is being slewed
// by some in a thousand.
func margin(ttl time.Duration) time.Duration {
	return min(ttl/100+2*time.Millisecond, ttl/10)
}

// deadlineOf returns the instant from which a lease asked for at asked is no
// longer trusted.
func deadlineOf(asked time.Time, ttl time.Duration) time.Time {
	return asked.Add(ttl - margin(ttl))
}

// passed reports whether deadline has passed on the monotonic or on the wall
// clock, whichever is later. The monotonic clock stands still while the machine
// is suspended; the wall clock then tells. A wall clock that is set forward costs
// the lease, which is the safe side; one that is set back changes nothing.
func passed(deadline, now time.Time) bool {
	return !now.Before(deadline) || !now.Round(0).Before(deadline.Round(0))
}

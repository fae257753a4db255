package lockfx

import "strconv"

// State is where a lock stands in its lifecycle. The numbers are part of the
// contract: metrics and stored data may rely on them.
type State uint8

// The states of a lock.
const (
	StateIdle      State = 0 // never acquired, or the last attempt was refused
	StateAcquiring State = 1 // a request is under way
	StateHeld      State = 2 // this lock has the lease
	StateReleasing State = 3 // the lease is being released
	StateReleased  State = 4 // released, or disposed of
	StateLost      State = 5 // the lease is lost; see [Reason]
)

var stateNames = [...]string{"idle", "acquiring", "held", "releasing", "released", "lost"}

// String returns the state in lower case, such as "held".
func (s State) String() string { return nameOf(stateNames[:], uint8(s), "State") }

// Reason is why a lease ended or was not accepted. The numbers are part of the
// contract.
type Reason uint8

// The reasons.
const (
	ReasonNone            Reason = 0 // nothing ended
	ReasonReleased        Reason = 1 // the holder gave it back
	ReasonHeartbeatFailed Reason = 2 // the store refused a renewal: the lease is not ours
	ReasonStoreError      Reason = 3 // the store failed: the outcome is unknown
	ReasonFenceRegressed  Reason = 4 // the store issued a token that does not rise
	ReasonDisposed        Reason = 5 // the lock was disposed of
	ReasonTimerUnarmable  Reason = 6 // the clock gave no timer, so nothing could be renewed
	ReasonExpired         Reason = 7 // the local deadline passed
	ReasonMaxHold         Reason = 8 // the longest permitted hold is over
)

var reasonNames = [...]string{
	"none", "released", "heartbeat failed", "store error", "fence regressed",
	"disposed", "timer unarmable", "expired", "max hold",
}

// String returns the reason in lower case, such as "heartbeat failed".
func (r Reason) String() string { return nameOf(reasonNames[:], uint8(r), "Reason") }

func nameOf(names []string, i uint8, kind string) string {
	if int(i) < len(names) {
		return names[i]
	}
	return kind + "(" + strconv.Itoa(int(i)) + ")"
}

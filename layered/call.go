package layered

import (
	"strconv"
	"syscall"
	"time"
)

// State says which callback is running, or which came last.
type State uint8

// The states.
const (
	StatePredicateBefore State = iota + 1 // the first check, before waiting
	StatePredicateAfter                   // the second check, after every layer was handled
	StateExecuted                         // the action
	StateTimeout                          // in results alone: the time set by WithTimeoutResult is over
)

var stateNames = [...]string{"none", "predicate-before", "predicate-after", "executed", "timeout"}

// String returns the state, such as "predicate-before".
func (s State) String() string { return nameOf(stateNames[:], uint8(s), "State") }

// Call is what every callback of one WithLock sees, and what its result carries.
type Call[I any] struct {
	Input I
	State State
	Lock  Info
}

// Result is the outcome of one WithLock.
type Result[I, T any] struct {
	Call[I]
	// Value is what the action returned, and zero if it did not run.
	Value T
}

// Info tells about the lock of one call: what every layer came to.
type Info struct {
	Namespace string
	Key       string
	// File is the path that the flock layer locks; the poll layer makes the
	// directory File + ".lock". It is empty when both are off.
	File string
	// Waited is the time that acquiring all the layers took, up to now.
	Waited time.Duration

	Memory, Worker, Flock, Poll LayerInfo
}

// Layer returns what came of one layer.
func (i Info) Layer(l Layer) LayerInfo {
	if p := i.layer(l); p != nil {
		return *p
	}
	return LayerInfo{}
}

func (i *Info) layer(l Layer) *LayerInfo {
	switch l {
	case LayerMemory:
		return &i.Memory
	case LayerWorker:
		return &i.Worker
	case LayerFlock:
		return &i.Flock
	case LayerPoll:
		return &i.Poll
	}
	return nil
}

// LayerInfo is what one layer came to. Before acquisition an Auto layer shows as on.
type LayerInfo struct {
	Outcome Outcome
	// Reason says, for people, why an Auto layer was skipped.
	Reason string
	// Errno is the system's number of that reason, or 0.
	Errno syscall.Errno
	// Backend names the means, such as "flock(2)"; it is empty for a layer that is
	// off.
	Backend string
}

// Outcome is what a layer came to.
type Outcome uint8

// The outcomes.
const (
	OutcomeOff     Outcome = iota // not asked for
	OutcomeOn                     // acquired, or about to be
	OutcomeSkipped                // Auto, and not available or not needed
)

var outcomeNames = [...]string{"off", "on", "skipped"}

// String returns the outcome in lower case, such as "skipped".
func (o Outcome) String() string { return nameOf(outcomeNames[:], uint8(o), "Outcome") }

// Layer is one of the four layers.
type Layer uint8

// The layers, in the order in which they are acquired.
const (
	LayerMemory Layer = iota // the goroutines that share one Locker
	LayerWorker              // all Lockers of this process
	LayerFlock               // the system's lock on a file
	LayerPoll                // the portable lock of proper-lockfile
)

const layers = 4

var layerNames = [...]string{"memory", "worker", "flock", "poll"}

// String returns the layer in lower case, such as "flock".
func (l Layer) String() string { return nameOf(layerNames[:], uint8(l), "Layer") }

func nameOf(names []string, i uint8, kind string) string {
	if int(i) < len(names) {
		return names[i]
	}
	return kind + "(" + strconv.Itoa(int(i)) + ")"
}

package layered

import "strings"

// Mode says whether a layer takes part.
type Mode uint8

// The modes. On never degrades: if the layer can't be had, the call fails.
const (
	Default Mode = iota // On for memory, Auto for the others; for a call: as its Locker says
	Off                 // the layer takes no part
	On                  // the layer must be acquired
	Auto                // acquired where the system has it, else skipped; see the package
)

var modeNames = [...]string{"Default", "Off", "On", "Auto"}

// String returns the mode as it is written, such as "Auto".
func (m Mode) String() string { return nameOf(modeNames[:], uint8(m), "Mode") }

// Scope says which layers take part. Layers that are left out keep their default.
// Memory is On or Off. With all four Off, nothing is excluded.
type Scope struct {
	Memory, Worker, Flock, Poll Mode
}

// String prints the layers that are set, as they are written.
func (s Scope) String() string {
	var set []string
	for l, m := range s.modes() {
		if m != Default {
			name := Layer(l).String()
			set = append(set, strings.ToUpper(name[:1])+name[1:]+": "+m.String())
		}
	}
	return "layered.Scope{" + strings.Join(set, ", ") + "}"
}

func (s Scope) modes() [layers]Mode { return [...]Mode{s.Memory, s.Worker, s.Flock, s.Poll} }

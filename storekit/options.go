package storekit

import (
	"fmt"
	"strings"

	"github.com/lockfx/lockfx"
)

// Settle applies the options of a store in order, and returns an error that matches
// [lockfx.ErrConfig] and names all faults: of options, which print themselves as they are
// written, and others that the store has found. An option that is nil is a fault.
func Settle[O fmt.Stringer](store string, opts []O, apply func(O) error, others ...string) error {
	var faults []string
	for i, opt := range opts {
		if any(opt) == nil {
			faults = append(faults, fmt.Sprintf("option %d is nil", i+1))
			continue
		}
		if err := apply(opt); err != nil {
			faults = append(faults, opt.String()+": "+err.Error())
		}
	}
	for _, fault := range others {
		if fault != "" {
			faults = append(faults, fault)
		}
	}
	if faults == nil {
		return nil
	}
	return fmt.Errorf("%s: %w: %s", store, lockfx.ErrConfig, strings.Join(faults, "; "))
}

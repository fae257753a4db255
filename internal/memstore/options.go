package memstore

import (
	"fmt"
	"time"
)

// An Option configures [New]. It prints itself as it is written.
type Option interface {
	fmt.Stringer
	apply(*Store)
}

// WithNow makes now the store's clock, which judges expiry and feeds the tokens.
// A nil now means the system clock, [time.Now], which is also the default.
//
// The store calls now under its mutex, one call at a time: it must be quick and
// must not call the store.
func WithNow(now func() time.Time) Option { return nowOption{now} }

type nowOption struct{ now func() time.Time }

func (o nowOption) apply(s *Store) {
	s.now = o.now
	if s.now == nil {
		s.now = time.Now
	}
}

func (o nowOption) String() string {
	if o.now == nil {
		return "memstore.WithNow(nil)"
	}
	return "memstore.WithNow(func)"
}

package filestore

import (
	"errors"
	"fmt"
	"time"
)

// An Option configures [New]. It prints itself as it is written.
type Option interface {
	fmt.Stringer
	apply(*Store) error
}

// WithNow makes now the store's clock, which judges expiry and feeds the tokens. A nil
// now means the system clock, [time.Now], which is also the default. All stores over
// one directory must have the same clock.
//
// The store may call now from several goroutines at once, and calls it while it holds a
// guard file: now must be quick and must not call the store.
func WithNow(now func() time.Time) Option { return nowOption{now} }

type nowOption struct{ now func() time.Time }

func (o nowOption) apply(s *Store) error {
	s.now = o.now
	if s.now == nil {
		s.now = time.Now
	}
	return nil
}

func (o nowOption) String() string {
	if o.now == nil {
		return "filestore.WithNow(nil)"
	}
	return "filestore.WithNow(func)"
}

// WithPolling makes watches look at the records about every interval instead of asking
// the system for news of the directory. It is for file systems that tell no news, such
// as some that are shared with a virtual machine. Where the system refuses to tell
// news, for want of inotify instances say, the store polls without being asked, about
// ten times a second.
//
// The interval must be greater than 0. Each wait takes between half of it and one and
// a half.
func WithPolling(interval time.Duration) Option { return pollingOption(interval) }

type pollingOption time.Duration

func (o pollingOption) apply(s *Store) error {
	if o <= 0 {
		return errors.New("the interval must be greater than 0")
	}
	s.watches.open = func() (news, error) { return poll(time.Duration(o)), nil }
	return nil
}

func (o pollingOption) String() string {
	return fmt.Sprintf("filestore.WithPolling(%v)", time.Duration(o))
}

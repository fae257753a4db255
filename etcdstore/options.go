package etcdstore

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	defaultPrefix = "lockfx/"
	maxPool       = 1000
)

// An Option configures [New]. It prints itself as it is written.
type Option interface {
	fmt.Stringer
	apply(*settings) error
}

type settings struct {
	prefix string
	pool   int
}

type option struct {
	text string
	set  func(*settings) error
}

func (o option) String() string { return o.text }

func (o option) apply(s *settings) error { return o.set(s) }

// WithPrefix puts prefix before the name of every key of the store; "lockfx/" by
// default. It has 1 to 128 bytes of UTF-8 without NUL and ends with a slash. A
// store needs the right to read, write and watch what begins with its prefix.
//
// Stores with different prefixes know nothing of each other.
func WithPrefix(prefix string) Option {
	return option{fmt.Sprintf("etcdstore.WithPrefix(%q)", prefix), func(s *settings) error {
		s.prefix = prefix
		switch {
		case len(prefix) > 128:
			return fmt.Errorf("has %d bytes; at most 128 are allowed", len(prefix))
		case !strings.HasSuffix(prefix, "/"):
			return errors.New("must end with a slash")
		case strings.Contains(prefix, "\x00") || !utf8.ValidString(prefix):
			return errors.New("must be UTF-8 without NUL")
		}
		return nil
	}}
}

// WithPool grants n leases of etcd ahead, 1 to 1000, so that several acquisitions at
// once need not wait for theirs. Without it, the store keeps one lease that came back
// from a release or a refusal, for the next acquisition.
//
// The pool follows the use of the store: an acquisition that finds none fills it with
// leases of its ttl, a lease that comes back is used again, and leases that nobody
// uses expire in etcd after their ttl.
func WithPool(n int) Option {
	return option{fmt.Sprintf("etcdstore.WithPool(%d)", n), func(s *settings) error {
		s.pool = n
		if n < 1 || n > maxPool {
			return fmt.Errorf("must be 1 to %d", maxPool)
		}
		return nil
	}}
}

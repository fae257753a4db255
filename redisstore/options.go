package redisstore

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// What holds without an option.
const (
	defaultPrefix = "lockfx:"
	defaultMemory = 24 * time.Hour
)

// minMemory is the shortest memory.
const minMemory = time.Second

// An Option configures [New]. It prints itself as it is written.
type Option interface {
	fmt.Stringer
	apply(*settings) error
}

type settings struct {
	prefix string
	memory time.Duration
}

type option struct {
	text string
	set  func(*settings) error
}

func (o option) String() string { return o.text }

func (o option) apply(s *settings) error { return o.set(s) }

// WithPrefix puts prefix before the name of every key and channel of the store;
// "lockfx:" by default. It has 1 to 128 bytes of UTF-8 without braces and NUL:
// braces mark the part of a name that decides about its slot in a cluster.
//
// Stores with different prefixes know nothing of each other.
func WithPrefix(prefix string) Option {
	return option{fmt.Sprintf("redisstore.WithPrefix(%q)", prefix), func(s *settings) error {
		s.prefix = prefix
		switch {
		case prefix == "":
			return errors.New("must not be empty")
		case len(prefix) > 128:
			return fmt.Errorf("has %d bytes; at most 128 are allowed", len(prefix))
		case strings.ContainsAny(prefix, "{}\x00") || !utf8.ValidString(prefix):
			return errors.New("must be UTF-8 without braces and NUL")
		}
		return nil
	}}
}

// WithMemory sets how long the last token of a key is remembered at least after its
// lease has ended; a day by default, and no less than a second. After twice that time
// the key costs nothing any more, and its next token comes from the server's clock
// alone.
func WithMemory(d time.Duration) Option {
	return option{fmt.Sprintf("redisstore.WithMemory(%v)", d), func(s *settings) error {
		s.memory = d
		if d < minMemory {
			return fmt.Errorf("must be at least %v", minMemory)
		}
		return nil
	}}
}

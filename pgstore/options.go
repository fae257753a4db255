package pgstore

import (
	"fmt"
	"time"

	"github.com/lockfx/lockfx/storekit"
)

// What holds without an option.
const (
	defaultSchema = "public"
	defaultTable  = "lockfx_leases"
	defaultMemory = 24 * time.Hour
)

// The bounds of the options.
const (
	minMemory      = time.Minute
	maxMemory      = 10 * 365 * 24 * time.Hour
	maxConnections = 1000
)

// An Option configures [New], and [Migrate] and [SchemaSQL], which heed the names.
// It prints itself as it is written.
type Option interface {
	fmt.Stringer
	apply(*settings) error
}

type settings struct {
	names
	memory      time.Duration
	async       bool
	connections int // of its own
	schemaGiven bool
}

type option struct {
	text string
	set  func(*settings) error
}

func (o option) String() string { return o.text }

func (o option) apply(s *settings) error { return o.set(s) }

// WithSchema sets the schema that has the table, 1 to 63 bytes; public by default. The
// search_path of a connection plays no part, so that two roles of one database never
// have a table each without saying so.
func WithSchema(name string) Option {
	return option{fmt.Sprintf("pgstore.WithSchema(%q)", name), func(s *settings) error {
		s.schema, s.schemaGiven = name, true
		return checkName(name, maxName)
	}}
}

// WithTable sets the name of the table, 1 to 53 bytes; lockfx_leases by default.
// Stores with different tables know nothing of each other.
func WithTable(name string) Option {
	return option{fmt.Sprintf("pgstore.WithTable(%q)", name), func(s *settings) error {
		s.table = name
		return checkName(name, maxTable)
	}}
}

// WithMemory sets how long the last token of a key is remembered after its lease has
// ended; a day by default, from a minute to ten years. After that the row of the key
// is swept, and its next token comes from the server's clock alone.
func WithMemory(d time.Duration) Option {
	return option{fmt.Sprintf("pgstore.WithMemory(%v)", d), func(s *settings) error {
		s.memory = d
		if d < minMemory || d > maxMemory {
			return fmt.Errorf("must be from %v to %v", minMemory, maxMemory)
		}
		return nil
	}}
}

// WithAsyncCommit makes the server answer before a change is on its disk. That saves
// the wait for the disk in every acquisition, renewal and release. When the server
// crashes, it may then forget what happened within the last moments (three times its
// wal_writer_delay, so 0.6 s by default): a lease that a living holder still trusts
// can be granted a second time. The second token is greater all the same, since it
// comes from the server's clock, so a fence still refuses the first holder.
func WithAsyncCommit() Option {
	return option{"pgstore.WithAsyncCommit()", func(s *settings) error {
		s.async = true
		return nil
	}}
}

// WithConnections gives the store n connections of its own, from 1 to 1000, which it
// opens when it needs them, as the pool is configured, and which [Store.Close] closes.
// The pool that it was given then serves its owner alone.
//
// An application whose bodies may take every connection of the pool needs one: a
// heartbeat that waits for a connection until the lease has ended loses the lease. One
// is enough for a thousand heartbeats a second.
func WithConnections(n int) Option {
	return option{fmt.Sprintf("pgstore.WithConnections(%d)", n), func(s *settings) error {
		s.connections = n
		if n < 1 || n > maxConnections {
			return fmt.Errorf("must be from 1 to %d", maxConnections)
		}
		return nil
	}}
}

// settle applies all options. The error names all their faults, and others.
func settle(opts []Option, others ...string) (settings, error) {
	s := settings{names: names{schema: defaultSchema, table: defaultTable}, memory: defaultMemory}
	err := storekit.Settle("pgstore", opts, func(o Option) error { return o.apply(&s) }, others...)
	return s, err
}

package pgstore

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockfx/lockfx"
)

// What holds without an option.
const (
	defaultTable  = "lockfx_leases"
	defaultMemory = 24 * time.Hour
)

// The memory also covers a request that arrives after its own undoing.
const (
	minMemory = time.Minute
	maxMemory = 10 * 365 * 24 * time.Hour
)

// An Option configures [New], and [Migrate] and [SchemaSQL], which heed the names.
// It prints itself as it is written.
type Option interface {
	fmt.Stringer
	apply(*settings) error
}

type settings struct {
	names
	memory time.Duration
	async  bool
}

type option struct {
	text string
	set  func(*settings) error
}

func (o option) String() string { return o.text }

func (o option) apply(s *settings) error { return o.set(s) }

// WithSchema sets the schema that has the table, 1 to 63 bytes. Without it the table
// is found by the search_path of the connections.
func WithSchema(name string) Option {
	return option{fmt.Sprintf("pgstore.WithSchema(%q)", name), func(s *settings) error {
		s.schema = name
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

// settle applies all options and returns all their faults.
func settle(opts []Option) (settings, []string) {
	s := settings{names: names{table: defaultTable}, memory: defaultMemory}
	var faults []string
	for i, opt := range opts {
		if opt == nil {
			faults = append(faults, fmt.Sprintf("option %d is nil", i+1))
			continue
		}
		if err := opt.apply(&s); err != nil {
			faults = append(faults, opt.String()+": "+err.Error())
		}
	}
	return s, faults
}

func configError(faults []string) error {
	if faults == nil {
		return nil
	}
	return fmt.Errorf("pgstore: %w: %s", lockfx.ErrConfig, strings.Join(faults, "; "))
}

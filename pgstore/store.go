package pgstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lockfx/lockfx"
)

// resolution is the shortest ttl. The server counts microseconds, yet a lease must
// outlast the statement that grants it.
const resolution = time.Millisecond

// Store is a [lockfx.Store] over PostgreSQL, with every optional capability. It is
// safe for concurrent use. Make one with [New].
//
// An error matches the end of the call's ctx, [lockfx.ErrConfig] for a key or a ttl
// that breaks a rule, [lockfx.ErrBadGrant] for an answer that is none, or
// [lockfx.ErrStore] for everything else that the client reports. The shortest ttl is
// 1 ms.
//
// A call takes one connection of the pool, for one round trip. It waits for one as
// long as its ctx allows.
type Store struct {
	pool    *pgxpool.Pool
	stmt    statements
	channel string
	memory  int64 // microseconds
	async   bool
	tasks   tasks
	hub     hub
}

var (
	_ lockfx.Store  = (*Store)(nil)
	_ lockfx.Closer = (*Store)(nil)
)

// New returns a store over pool, which it never closes. It asks the server nothing:
// [Migrate] makes the table. The error matches [lockfx.ErrConfig] and names all
// faults of the options.
func New(pool *pgxpool.Pool, opts ...Option) (*Store, error) {
	set, faults := settle(opts)
	if pool == nil {
		faults = append(faults, "the pool must not be nil")
	}
	if err := configError(faults); err != nil {
		return nil, err
	}
	s := &Store{
		pool:    pool,
		stmt:    set.statements(),
		channel: set.channel(),
		memory:  set.memory.Microseconds(),
		async:   set.async,
	}
	s.hub.open = s.listen
	s.hub.tasks = &s.tasks
	return s, nil
}

// From returns a store over pool with default options. It has the form that
// fxlock.StoreFrom takes:
//
//	fxlock.StoreFrom(pgstore.From)
func From(pool *pgxpool.Pool) (*Store, error) { return New(pool) }

// Close ends the store's own connection, which closes the channels of those who
// still watch, and waits until nothing of the store is under way. It does not close
// the pool. If ctx ends first, the error matches its cause. A closed store can be
// used again.
func (s *Store) Close(ctx context.Context) error {
	s.hub.close()
	if err := s.tasks.wait(ctx); err != nil {
		return fmt.Errorf("pgstore: close: %w", err)
	}
	return nil
}

// microsOf returns ttl in microseconds, rounded up: nobody may take a lease early.
func microsOf(ttl time.Duration) int64 {
	micros := ttl.Microseconds()
	if time.Duration(micros)*time.Microsecond < ttl {
		micros++
	}
	return micros
}

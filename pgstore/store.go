package pgstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/storekit"
)

// resolution is the shortest ttl. The server counts microseconds, yet a lease must
// outlast the statement that grants it.
const resolution = time.Millisecond

// Store is a [lockfx.Store] over PostgreSQL, with every optional capability. It is
// safe for concurrent use. Make one with [New].
//
// An error matches, in this order, the end of the call's ctx, [lockfx.ErrConfig] for a
// key or a ttl that breaks a rule, [lockfx.ErrBadGrant] for an answer that is none, or
// [lockfx.ErrStore] for everything else that the client reports. The shortest ttl is
// 1 ms.
//
// A call takes one connection of the pool, for one round trip. When that connection is
// of no use, because it breaks, leads to a standby, or stays silent for 5 s or a quarter
// of the time that ctx leaves, the call drops it and goes on with another one: see the
// package's documentation.
type Store struct {
	pool    *pgxpool.Pool
	most    int // connections that may turn out to be of no use before a new one
	stmt    statements
	channel string
	memory  int64 // microseconds
	async   bool
	inline  atomic.Bool // statements are sent with their text, and not prepared
	tracer  pgx.QueryTracer

	client   int64 // tells the requests of this store from those of others
	requests atomic.Int64

	ownConfig *pgxpool.Config
	dedicated bool          // every call uses the store's own connections
	mu        sync.Mutex    // guards own
	own       *pgxpool.Pool // nil until it is used

	tasks        storekit.Tasks
	watches      storekit.Watches
	opener       func(context.Context) (listener, error)
	cannotListen atomic.Pointer[error] // why, until the store is closed
}

var (
	_ lockfx.Store  = (*Store)(nil)
	_ lockfx.Closer = (*Store)(nil)
)

// New returns a store over pool, which it never closes. It asks the server nothing:
// [Migrate] makes the table. The error matches [lockfx.ErrConfig] and names all
// faults of the options.
func New(pool *pgxpool.Pool, opts ...Option) (*Store, error) {
	var poolFault string
	if pool == nil {
		poolFault = "the pool must not be nil"
	}
	set, err := settle(opts, poolFault)
	if err != nil {
		return nil, err
	}
	config := pool.Config()
	s := &Store{
		pool:    pool,
		stmt:    set.statements(),
		channel: set.channel(),
		memory:  set.memory.Microseconds(),
		async:   set.async,
		tracer:  config.ConnConfig.Tracer,
		client:  rand.Int64(),
	}
	s.most = max(int(config.MaxConns), set.connections)
	s.inline.Store(config.ConnConfig.DefaultQueryExecMode != pgx.QueryExecModeCacheStatement)
	s.ownConfig, s.dedicated = ownPool(config, set.connections), set.connections > 0
	s.opener = s.open
	s.watches.Listen, s.watches.Tasks = s.listen, &s.tasks
	return s, nil
}

// From returns a store over pool with default options. It has the form that
// fxlock.StoreFrom takes:
//
//	fxlock.StoreFrom(pgstore.From)
func From(pool *pgxpool.Pool) (*Store, error) { return New(pool) }

// Close ends the store's own connections, which closes the channels of those who
// still watch, and waits until nothing of the store is under way. It does not close
// the pool. If ctx ends first, the error matches its cause. A closed store can be
// used again.
func (s *Store) Close(ctx context.Context) error {
	s.watches.Close()
	s.closeOwn()
	err := s.tasks.Wait(ctx)
	s.cannotListen.Store(nil)
	if err != nil {
		return fmt.Errorf("pgstore: close: %w", err)
	}
	return nil
}

// next returns the number of the next request.
func (s *Store) next() int64 { return s.requests.Add(1) }

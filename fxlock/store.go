package fxlock

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/graph"
	"github.com/lockfx/lockfx/internal/memstore"
)

// WithStore gives the lock a store. The lock does not close it.
func WithStore(store lockfx.Store) Option {
	text := "fxlock.WithStore(" + orNil(store, storeText(store)) + ")"
	return option{text, func(s *settings) {
		if graph.IsNil(store) {
			s.fault(text, "must not be nil")
		}
		s.chooseStore(&storeChoice{text: text, value: store})
	}}
}

// storeText prints the type of a store by a name that its reader can use.
func storeText(store lockfx.Store) string {
	if _, ok := store.(*MemoryStore); ok {
		return "*fxlock.MemoryStore"
	}
	return fmt.Sprintf("%T", store)
}

// StoreFrom gives the lock a store that only this lock uses. ctor is a constructor that
// takes anything from the graph and returns a [lockfx.Store], or a type that implements it,
// and optionally an error. It may be the result of fx.Annotate, for example to take a named
// client; a variadic parameter is left out. If the store is a [lockfx.Closer], it is closed
// when the lock has been disposed of. If it can't be built, fx.New fails.
func StoreFrom(ctor any) Option {
	text := "fxlock.StoreFrom(" + graph.CtorText(ctor) + ")"
	return option{text, func(s *settings) {
		s.moduleOnly(text)
		fn, err := graph.Returning(ctor, storeType)
		if err != nil {
			s.faultErr(text, err)
		}
		s.chooseStore(&storeChoice{text: text, ctor: fn, pc: graph.EntryOf(ctor)})
	}}
}

// StoreFromGraph makes the lock use the [lockfx.Store] that the application
// provides, unnamed or under the given name. If there is none, fx.New fails. The
// lock does not close it.
func StoreFromGraph(name ...string) Option {
	text := "fxlock.StoreFromGraph(" + graph.Quoted(name) + ")"
	return option{text, func(s *settings) {
		s.moduleOnly(text)
		if len(name) > 1 {
			s.fault(text, "takes one name at most")
		}
		s.chooseStore(&storeChoice{text: text, graph: graph.NameTag(name...)})
	}}
}

var storeType = reflect.TypeFor[lockfx.Store]()

// provide returns the constructor that puts the store into the graph, under a name that
// only this lock asks for. Where the application has none to give, fx prints the name.
func (c *storeChoice) provide(lock string, site uintptr) any {
	made, pc := graph.PassOn(storeType, c.graph), site
	if c.owned() {
		made, pc = c.ctor.Interface(), c.pc
	}
	return graph.Located(made, pc, fx.ResultTags(c.tag(lock)))
}

// tag returns the struct tag that the lock asks for its store with.
func (c *storeChoice) tag(lock string) string {
	if c.owned() {
		return graph.NameTag(fmt.Sprintf("lock %s, fxlock.StoreFrom", lock))
	}
	return graph.NameTag(fmt.Sprintf("lock %s, fxlock.StoreFromGraph; if lockfx.Store is missing: fx.Provide one, by fx.As if its constructor "+
		"returns another type", lock))
}

// MemoryStore is a store inside this process: it excludes only the goroutines and
// applications that share it. It is for programs that run once, and for tests, and keeps
// every promise of the contract. Make one with [NewMemoryStore]. It is safe for concurrent
// use.
//
// Each method returns an error, and changes nothing, when its ctx is over (the error matches
// ctx.Err() and the cause), or when the key or the ttl breaks a rule (the error matches
// [lockfx.ErrConfig]). The shortest ttl is 1 ns. Expired leases and free keys take no memory.
type MemoryStore struct{ engine *memstore.Store }

var (
	_ lockfx.Store     = (*MemoryStore)(nil)
	_ lockfx.Watcher   = (*MemoryStore)(nil)
	_ lockfx.Inspector = (*MemoryStore)(nil)
	_ lockfx.Breaker   = (*MemoryStore)(nil)
)

// NewMemoryStore returns an empty memory store.
func NewMemoryStore(opts ...MemoryStoreOption) *MemoryStore {
	engine := make([]memstore.Option, len(opts))
	for i, o := range opts {
		engine[i] = o.engine()
	}
	return &MemoryStore{memstore.New(engine...)}
}

// A MemoryStoreOption configures [NewMemoryStore]. It prints itself as it is written.
type MemoryStoreOption interface {
	fmt.Stringer
	engine() memstore.Option
}

// MemoryStoreClock makes now the clock of a memory store, instead of time.Now. The clock
// decides expiry and feeds the tokens. now is called under the store's mutex, so it must be
// quick and must not call the store. A nil now is time.Now.
func MemoryStoreClock(now func() time.Time) MemoryStoreOption { return memoryStoreClock(now) }

type memoryStoreClock func() time.Time

func (c memoryStoreClock) engine() memstore.Option { return memstore.WithNow(c) }

func (c memoryStoreClock) String() string {
	return "fxlock.MemoryStoreClock(" + orNil((func() time.Time)(c), "func") + ")"
}

// Acquire takes the lease on key for ttl if the key is free or its lease expired.
// Otherwise the grant names the label of the holder and the time left, which is greater
// than 0. It never waits. An error matches [lockfx.ErrStore] when the last possible token
// was issued.
func (s *MemoryStore) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	return s.engine.Acquire(ctx, key, ttl)
}

// Renew sets the time left of the lease on key to ttl if the lease is unexpired and
// carries exactly token, and reports whether it did. Otherwise it changes nothing. A
// renewal that shortens the lease wakes the watchers of the key.
func (s *MemoryStore) Renew(ctx context.Context, key string, token lockfx.Token, ttl time.Duration) (bool, error) {
	return s.engine.Renew(ctx, key, token, ttl)
}

// Release frees the lease on key if it is unexpired and carries exactly token, and
// reports whether it did.
func (s *MemoryStore) Release(ctx context.Context, key string, token lockfx.Token) (bool, error) {
	return s.engine.Release(ctx, key, token)
}

// Watch returns a channel that gets a signal whenever the key was freed, by its holder or
// by force, and when its lease was shortened. The channel is never closed. stop ends the
// watch; it may be called more than once and by several goroutines at once, and must be
// called.
func (s *MemoryStore) Watch(ctx context.Context, key string) (freed <-chan struct{}, stop func(), err error) {
	return s.engine.Watch(ctx, key)
}

// Inspect returns the unexpired lease on key, or the zero Lease.
func (s *MemoryStore) Inspect(ctx context.Context, key string) (lockfx.Lease, error) {
	return s.engine.Inspect(ctx, key)
}

// Break frees the key from any holder, and reports whether there was an unexpired lease.
// The next token is greater than the broken one. In a test it takes a lease away from its
// holder, who is refused at the next heartbeat.
func (s *MemoryStore) Break(ctx context.Context, key string) (bool, error) {
	return s.engine.Break(ctx, key)
}

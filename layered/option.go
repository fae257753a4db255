package layered

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/lockfx/lockfx/layered/internal/polldir"
)

// An Option configures one [WithLock]. It prints itself as it is written.
type Option interface {
	fmt.Stringer
	apply(*settings)
}

// A LockerOption configures a [Locker], or one [WithLock], which then wins.
type LockerOption interface {
	Option
	servesLockers()
}

// option writes its text when somebody reads it: most options are made anew for
// every call.
type option struct {
	text func() string
	set  func(*settings)
}

func (o option) String() string    { return o.text() }
func (o option) apply(s *settings) { o.set(s) }

type lockerOption struct{ option }

func (lockerOption) servesLockers() {}

// WithKey names what is locked: any string. Without it, the key is a hash of the
// input; see the package.
func WithKey(key string) Option {
	return option{quoted("WithKey", key), func(s *settings) { s.key, s.keyed = key, true }}
}

// WithNamespace keeps equal keys of different purposes apart. The default is "".
func WithNamespace(namespace string) LockerOption {
	return lockerOption{option{quoted("WithNamespace", namespace), func(s *settings) { s.namespace = namespace }}}
}

// WithPredicate makes check decide whether the action is still needed: once before
// waiting, and once more when every layer has been handled. The action runs only if
// both say true. An error of check is returned as it is. I is the input's type.
func WithPredicate[I any](check func(ctx context.Context, call Call[I]) (bool, error)) Option {
	return callback[I]("WithPredicate", check == nil, func(s *settings) { s.predicate = check })
}

// WithOnCheckFailed makes notify run when a predicate said false, after all that was
// acquired has been released: it may take locks itself. An error of notify is
// returned as it is. I is the input's type.
func WithOnCheckFailed[I any](notify func(ctx context.Context, call Call[I]) error) Option {
	return callback[I]("WithOnCheckFailed", notify == nil, func(s *settings) { s.onCheckFailed = notify })
}

func callback[I any](name string, isNil bool, set func(*settings)) Option {
	text := func() string { return call(name, fmt.Sprintf("func of %T", Call[I]{})) }
	return option{text, func(s *settings) {
		if isNil {
			s.fault(text(), "must not be nil")
			return
		}
		set(s)
	}}
}

// WithTimeout bounds waiting for all layers together: 0 or more. When d is over,
// WithLock returns a [TimeoutError], after one attempt more at the layer. 0 makes one
// attempt at each layer, without any sleep. Without a timeout the context alone ends
// the wait.
func WithTimeout(d time.Duration) LockerOption { return timeout("WithTimeout", d, timeoutFails) }

// WithTimeoutResult is WithTimeout, but when d is over, WithLock returns a result
// whose state is StateTimeout, and no error.
func WithTimeoutResult(d time.Duration) LockerOption {
	return timeout("WithTimeoutResult", d, timeoutSucceeds)
}

func timeout(name string, d time.Duration, kind timeoutKind) LockerOption {
	text := printed(name, d)
	return lockerOption{option{text, func(s *settings) {
		if d < 0 {
			s.fault(text(), "must not be negative")
		}
		s.timeout, s.onTimeout = d, kind
	}}}
}

// WithScope says which layers take part. Layers that scope leaves out are as before.
func WithScope(scope Scope) LockerOption {
	text := printed("WithScope", scope)
	return lockerOption{option{text, func(s *settings) {
		for l, m := range scope.modes() {
			switch {
			case m > Auto:
				s.fault(text(), Layer(l).String()+" must be Off, On or Auto")
			case m == Auto && Layer(l) == LayerMemory:
				s.fault(text(), "memory must be Off or On")
			case m != Default:
				s.scope[l] = m
			}
		}
	}}}
}

// WithDir sets the directory of the lock files. It is made (0700) if it is missing. If
// its group may write to it, the users of the group share the locks. The default is
// $LOCKFX_LOCK_DIR, then $LOQKIT_LOCK_DIR, which must be absolute, then a directory of this
// user in /tmp; see the package.
func WithDir(dir string) LockerOption {
	text := quoted("WithDir", dir)
	return lockerOption{option{text, func(s *settings) { s.dir = s.pathArg(text, dir) }}}
}

// WithFile sets the path that the flock layer locks, instead of a name made of
// namespace and key, so as to share it with another program: flock(1) locks the path
// itself, and lock(path) of proper-lockfile the directory path + ".lock", which is taken
// only if flock is Off or poll On. Flock is On unless [WithScope] says Off: the other
// program would not notice that it was skipped. The file is made (0600) if it is missing,
// and never removed. Users of a group share it if the group may write to it. Without
// [WithKey], the path is the key too.
func WithFile(path string) Option {
	text := quoted("WithFile", path)
	return option{text, func(s *settings) { s.file = s.pathArg(text, path) }}
}

// WithStale sets the time after which a lock of the poll layer that was not
// refreshed counts as stale: 2 s or more, 10 s by default. All who share a path need
// the same. A holder refreshes at half of it.
func WithStale(d time.Duration) LockerOption {
	text := printed("WithStale", d)
	return lockerOption{option{text, func(s *settings) {
		if d < polldir.MinStale {
			s.fault(text(), "must be at least "+polldir.MinStale.String())
		}
		s.stale = d
	}}}
}

// WithLocker makes the call use locker: its memory layer and its defaults. Without
// it, that is one Locker that the whole process shares.
func WithLocker(locker *Locker) Option { return chosenLocker{locker} }

type chosenLocker struct{ *Locker }

func (chosenLocker) String() string { return call("WithLocker", "*layered.Locker") }

// apply finds a fault only: newSettings has chosen the locker before.
func (c chosenLocker) apply(s *settings) {
	if c.Locker == nil {
		s.fault(c.String(), "must not be nil")
	}
}

func quoted(name, arg string) func() string {
	return func() string { return call(name, strconv.Quote(arg)) }
}

func printed(name string, arg fmt.Stringer) func() string {
	return func() string { return call(name, arg.String()) }
}

func call(name, arg string) string { return "layered." + name + "(" + arg + ")" }

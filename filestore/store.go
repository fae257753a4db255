package filestore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/storekit"
)

// resolution is the shortest ttl. Shorter leases would be over before they are on disk.
const resolution = time.Millisecond

// Store is a [lockfx.Store] over a directory. It is safe for concurrent use, and so is
// the directory, by any number of stores and processes of this host. Make one with
// [New].
//
// Each method returns an error, and has then changed nothing, when its ctx is over (the
// error matches ctx.Err() and the cause), or when the key or the ttl breaks a rule (the
// error matches [lockfx.ErrConfig]). The shortest ttl is 1 ms. What the file system
// answers is an error that matches [lockfx.ErrStore] and the errno. A file that can't be
// believed is one that matches [ErrCorrupt] or [ErrUnsafe] as well. No error ever stands
// for "held", and no grant is made on a guess.
//
// The end of ctx is honoured before every step and while waiting for other processes,
// which lasts for 5 s at most if ctx has no deadline. But a system call on a disk that
// does not answer can't be called back.
type Store struct {
	dir     *directory
	now     func() time.Time
	watches hub

	mu     sync.Mutex   // guards what follows
	issued lockfx.Token // the greatest one that this store issued
}

var _ lockfx.Store = (*Store)(nil)

// New returns a store over dir. The directory is made, with its parents and for this
// user alone (mode 0700), if it does not exist; what root makes belongs to the owner of
// the parent. All processes that compete must name the same one: an absolute path is best.
//
// An error matches [lockfx.ErrConfig] for a bad option, or comes from the file system, or
// matches [ErrUnsafe]: for a path over a symbolic link, for a directory in which everybody
// can write, and for one of another user that its group may not write to. A directory of
// root is accepted, and root accepts everybody's. All faults are reported at once.
func New(dir string, opts ...Option) (*Store, error) {
	d, err := openDirectory(dir)
	s := &Store{dir: d, now: time.Now}
	s.watches = hub{keys: map[string]*watched{}, look: s.sight, open: func() (news, error) {
		return subscribe(d, fsnotify.NewWatcher)
	}}
	apply := func(opt Option) error { return opt.apply(s) }
	if err := errors.Join(err, storekit.Settle("options", opts, apply)); err != nil {
		return nil, fmt.Errorf("open file store %q: %w", dir, err)
	}
	return s, nil
}

// Acquire takes the lease on key for ttl if the key is free or its lease expired.
// Otherwise the grant names the label of the holder and the time left, which is greater
// than 0. It never waits for a lease; it may wait for milliseconds while other processes
// write to the directory.
//
// The lease is on disk, in a form that survives a loss of power, before Acquire returns
// it. When the last possible token was issued, the error matches [lockfx.ErrStore].
func (s *Store) Acquire(ctx context.Context, key string, ttl time.Duration) (lockfx.Grant, error) {
	if err := storekit.Check(ctx, "acquire", key, lockfx.CheckTTL(ttl, resolution)); err != nil {
		return lockfx.Grant{}, err
	}
	s.sweepIfDue(ctx)
	var grant lockfx.Grant
	err := s.decide(ctx, "acquire", key, func(now time.Time) error {
		last, err := s.load(key)
		if err != nil {
			return err
		}
		if last.liveAt(now) {
			grant = lockfx.Grant{HeldBy: last.Label, RetryAfter: last.Ends.Sub(now)}
			return nil
		}
		token, now, err := s.issue(ctx, last.Token)
		if err != nil {
			return err
		}
		r := record{Key: key, Held: true, Token: token, Previous: last.Token, Label: storable(lockfx.LabelFrom(ctx)), Ends: wall(now.Add(ttl))}
		replaced, err := s.save(r)
		if err == nil {
			err = context.Cause(ctx)
		}
		if err == nil {
			grant = lockfx.Grant{OK: true, Token: token}
			return nil
		}
		if replaced {
			// The caller will not know of this lease, so nobody must have it.
			_, undo := s.save(r.freed(now))
			err = errors.Join(err, undo)
		}
		return err
	})
	if err != nil {
		return lockfx.Grant{}, err
	}
	return grant, nil
}

// Renew sets the time left of the lease on key to ttl if the lease is unexpired and
// carries exactly token, and reports whether it did. Otherwise it changes nothing. A
// renewal that shortens the lease wakes those who watch the key, since the time left
// that they were told is too long.
func (s *Store) Renew(ctx context.Context, key string, token lockfx.Token, ttl time.Duration) (bool, error) {
	if err := storekit.Check(ctx, "renew", key, lockfx.CheckTTL(ttl, resolution)); err != nil {
		return false, err
	}
	return s.change(ctx, "renew", key, token, func(r record, now time.Time) record {
		r.Ends = wall(now.Add(ttl))
		return r
	})
}

// Release frees the lease on key if it is unexpired and carries exactly token, and
// reports whether it did. An expired lease is none any more: false.
func (s *Store) Release(ctx context.Context, key string, token lockfx.Token) (bool, error) {
	if err := storekit.Check(ctx, "release", key, nil); err != nil {
		return false, err
	}
	return s.change(ctx, "release", key, token, record.freed)
}

// change replaces the lease on key if it is unexpired and carries token, and reports
// whether it did.
func (s *Store) change(ctx context.Context, op, key string, token lockfx.Token, to func(record, time.Time) record) (changed bool, err error) {
	err = s.decide(ctx, op, key, func(now time.Time) error {
		r, err := s.load(key)
		if err != nil || !r.liveAt(now) || r.Token != token {
			return err
		}
		_, err = s.save(to(r, now))
		changed = err == nil
		return err
	})
	return changed, err
}

// decide calls f while nobody else may change the record of key. The instant that f
// decides by is read then, not before a wait. Every error names op and key.
//
// A ctx with a deadline says itself how long to wait: that of a renewal ends with the
// lease.
func (s *Store) decide(ctx context.Context, op, key string, f func(now time.Time) error) error {
	stripe, _ := stripeOf(leaseName(key))
	within := patience
	if _, bounded := ctx.Deadline(); bounded {
		within = math.MaxInt64
	}
	release, err := s.dir.guard(ctx, stripe, within)
	if err == nil {
		defer release()
		now := s.now()
		if err = context.Cause(ctx); err == nil {
			err = f(now)
		}
	}
	if err != nil {
		return storekit.Fault(ctx, op, key, err)
	}
	return nil
}

// load returns the record of key, or the zero record.
func (s *Store) load(key string) (record, error) {
	name := leaseName(key)
	r, err := s.loadNamed(name)
	if err == nil && r != (record{}) && r.Key != key {
		err = fmt.Errorf("read %s: %w: it is about key %q", s.dir.file(name), ErrCorrupt, r.Key)
	}
	return r, err
}

// loadNamed returns the record with this name, or the zero record.
func (s *Store) loadNamed(name string) (r record, err error) {
	data, found, err := s.dir.read(name)
	if found && err == nil {
		r, err = unseal[record](leaseFormat, data)
	}
	if err != nil {
		return record{}, fmt.Errorf("read %s: %w", s.dir.file(name), err)
	}
	return r, nil
}

// save writes r. On an error it reports whether others see r nevertheless.
func (s *Store) save(r record) (replaced bool, err error) {
	data, err := seal(leaseFormat, r)
	if err != nil {
		return false, err
	}
	if err := s.dir.replace(leaseName(r.Key), data); err != nil {
		return false, err
	}
	return true, s.dir.sync()
}

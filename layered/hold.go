package layered

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"

	"github.com/lockfx/lockfx/layered/internal/fifo"
	"github.com/lockfx/lockfx/layered/internal/flock"
	"github.com/lockfx/lockfx/layered/internal/polldir"
)

// The layers that a whole process shares.
var (
	workers fifo.Set[name]
	files   = new(flock.Files)
	dirs    = new(polldir.Dirs)
)

var errTimeout = errors.New("the time to wait is over")

// hold is what one call holds.
type hold struct {
	s     *settings
	name  name
	place place
	info  *Info
	on    [layers]bool
	file  flock.Lock
	dir   *polldir.Lock
	lost  context.CancelCauseFunc
	loss  error // set before lost is called
	outer *hold // the hold that this one is made within, or nil
	over  atomic.Bool
}

// acquire takes the layers in order. If one can't be had it says which, and why:
// fifo.ErrBusy when the time is over, the cause of the end of ctx, or what is wrong
// with the layer. What was taken before is held until release.
func (h *hold) acquire(ctx context.Context, once bool) (Layer, error) {
	for l := range Layer(layers) {
		info := h.info.layer(l)
		auto := h.s.scope[l] == Auto
		if info.Outcome == OutcomeOff {
			continue
		}
		if l == LayerPoll && auto && h.on[LayerFlock] {
			info.skip("flock is held", nil)
			continue
		}
		if h.nested(ctx, l) {
			return l, errNested
		}
		err := h.take(ctx, l, once)
		if errors.Is(err, errTimeout) {
			err = h.take(ctx, l, true) // the time is over, but a free layer is no reason to fail
		}
		busy := errors.Is(err, fifo.ErrBusy)
		switch {
		case err == nil:
			h.on[l] = true
		case l == LayerFlock && auto && !busy && !endedBy(ctx, err) && !shortage(err):
			info.skip(err.Error(), err)
		case l == LayerPoll && busy && h.on[LayerFlock]:
			return l, fmt.Errorf("%w: held by one that does not use flock", ErrLockUnavailable)
		default:
			return l, err
		}
	}
	return 0, nil
}

// shortage reports whether err says nothing about the lock, only that this process or
// the system has run short. Others hold the lock meanwhile, so it must not be skipped.
func shortage(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

func (h *hold) take(ctx context.Context, l Layer, once bool) (err error) {
	switch l {
	case LayerMemory:
		return lockName(ctx, &h.s.locker.memory, h.name, once)
	case LayerWorker:
		return lockName(ctx, &workers, h.name, once)
	}
	if err := h.place.prepare(); err != nil {
		return err
	}
	path := h.place.path
	switch {
	case l == LayerFlock && once:
		h.file, err = files.TryLock(path)
	case l == LayerFlock:
		h.file, err = files.Lock(ctx, path)
	case once || h.on[LayerFlock]:
		h.dir, err = dirs.TryLock(path+pollSuffix, h.s.stale, h.lose)
	default:
		h.dir, err = dirs.Lock(ctx, path+pollSuffix, h.s.stale, h.lose)
	}
	return err
}

func lockName(ctx context.Context, set *fifo.Set[name], n name, once bool) error {
	if !once {
		return set.Lock(ctx, n)
	}
	if !set.TryLock(n) {
		return fifo.ErrBusy
	}
	return nil
}

// lose is called at most once, and not after the poll layer was given back.
func (h *hold) lose(err error) {
	h.loss = &LostError{LayerPoll, h.name.key, err}
	h.lost(h.loss)
}

// releaseAfter gives back what is held, and joins what went wrong to err.
func (h *hold) releaseAfter(err error) error {
	releasing := h.release()
	if releasing == nil || h.loss != nil && errors.Is(err, h.loss) {
		return err
	}
	if err == nil {
		return releasing
	}
	return errors.Join(err, releasing)
}

// release gives back what is held, in reverse, each layer on its own.
func (h *hold) release() error {
	var errs []error
	h.over.Store(true)
	if h.on[LayerPoll] {
		err := h.dir.Unlock()
		switch {
		case h.loss != nil:
			errs = append(errs, h.loss)
		case err != nil:
			errs = append(errs, &LayerError{"release", LayerPoll, h.name.key, err})
		}
	}
	if h.on[LayerFlock] {
		if err := h.file.Unlock(); err != nil {
			errs = append(errs, &LayerError{"release", LayerFlock, h.name.key, err})
		}
	}
	if h.on[LayerWorker] {
		workers.Unlock(h.name)
	}
	if h.on[LayerMemory] {
		h.s.locker.memory.Unlock(h.name)
	}
	return errors.Join(errs...)
}

func (i *LayerInfo) skip(reason string, err error) {
	i.Outcome, i.Reason = OutcomeSkipped, reason
	errors.As(err, &i.Errno)
}

const pollSuffix = ".lock"

var backends = [layers]string{"queue of one Locker", "queue of the process", flockBackend(), "directory of proper-lockfile"}

func flockBackend() string {
	if runtime.GOOS == "windows" {
		return "LockFileEx"
	}
	return "flock(2)"
}

// newHold returns a hold of nothing, and makes info show the layers before
// acquisition.
func newHold(s *settings, info *Info) *hold {
	h := &hold{s: s, name: name{s.namespace, s.key}, info: info}
	*info = Info{Namespace: s.namespace, Key: s.key}
	for l, mode := range s.scope {
		if mode != Off {
			*info.layer(Layer(l)) = LayerInfo{Outcome: OutcomeOn, Backend: backends[l]}
		}
	}
	if s.scope[LayerFlock] != Off || s.scope[LayerPoll] != Off {
		h.place = s.place()
		info.File = h.place.path
	}
	return h
}

package layered

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

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
	watch watch // of the file
	dir   *polldir.Lock
	lost  context.CancelCauseFunc
	loss  atomic.Pointer[LostError] // of the layer that was lost first; set before lost is called
	outer *hold                     // the hold that this one is made within, or nil
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
		case l == LayerFlock && auto && flock.Unavailable(err):
			info.skip(err.Error(), err)
		case l == LayerPoll && busy && h.on[LayerFlock]:
			return l, fmt.Errorf("%w: held by one that does not use flock", ErrLockUnavailable)
		default:
			return l, err
		}
	}
	return 0, nil
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
		h.dir, err = dirs.TryLock(path+pollSuffix, h.s.stale, h.loseDir)
	default:
		h.dir, err = dirs.Lock(ctx, path+pollSuffix, h.s.stale, h.loseDir)
	}
	if err == nil && l == LayerFlock {
		h.watch.begin(h)
		if h.file.Opened() {
			h.place.sweep()
		}
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

// lose is called at most once for each layer, and not after that was given back.
func (h *hold) lose(l Layer, err error) {
	loss := &LostError{l, h.name.key, err}
	if h.loss.CompareAndSwap(nil, loss) {
		h.lost(loss)
	}
}

func (h *hold) loseDir(err error) { h.lose(LayerPoll, err) }

// releaseAfter gives back what is held, and joins what went wrong to err.
func (h *hold) releaseAfter(err error) error {
	faults := h.release()
	if loss := h.loss.Load(); loss != nil && !errors.Is(err, loss) {
		faults = append([]error{loss}, faults...)
	}
	switch {
	case len(faults) == 0:
		return err
	case err != nil:
		faults = append([]error{err}, faults...)
	}
	return errors.Join(faults...)
}

// release gives back what is held, in reverse, each layer on its own. It returns what
// went wrong but the loss.
func (h *hold) release() (faults []error) {
	h.over.Store(true)
	back := func(l Layer, err error) {
		if loss := h.loss.Load(); err != nil && (loss == nil || loss.Layer != l) {
			faults = append(faults, &LayerError{"release", l, h.name.key, err})
		}
	}
	if h.on[LayerPoll] {
		back(LayerPoll, h.dir.Unlock())
	}
	if h.on[LayerFlock] {
		h.watch.end(h)
		back(LayerFlock, h.file.Unlock())
	}
	if h.on[LayerWorker] {
		workers.Unlock(h.name)
	}
	if h.on[LayerMemory] {
		h.s.locker.memory.Unlock(h.name)
	}
	return faults
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
	h.place, info.File = s.at, s.at.path
	return h
}

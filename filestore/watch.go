package filestore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/storekit"
)

var (
	_ lockfx.Watcher = (*Store)(nil)
	_ lockfx.Closer  = (*Store)(nil)
)

// Watch returns a channel that gets a signal whenever the key was freed, by its holder
// or by force and in whatever process, and when its lease was shortened. stop ends the
// watch; it may be called more than once and by several goroutines at once, and must be
// called. The channel is closed when the directory is gone, and by [Store.Close]: a
// store that was watched must be closed in the end.
func (s *Store) Watch(ctx context.Context, key string) (<-chan struct{}, func(), error) {
	if err := storekit.Check(ctx, "watch", key, nil); err != nil {
		return nil, nil, err
	}
	freed, stop, err := s.watches.add(key)
	if err != nil {
		return nil, nil, storekit.Fault(ctx, "watch", key, err)
	}
	return freed, stop, nil
}

// Close ends all watches, whose channels are closed, and the subscription to the
// system's news. Leases are left alone, and the store can be used again. The error
// matches that of ctx if ctx ends first; what is left then ends by itself.
func (s *Store) Close(ctx context.Context) error {
	if s.watches.close(ctx) != nil {
		return storekit.Ended(ctx, "close file store", s.dir.path)
	}
	return nil
}

// hub tells the watchers of all keys about news of the directory. One goroutine reads
// the news, from the first watch on until the store is closed or the directory is gone.
// It is not ended with the last watch: to give a subscription back takes the system
// longer than a lease is waited for.
type hub struct {
	open  func() (news, error)
	look  func(key string) (sight, error)
	tasks storekit.Tasks // the goroutine that reads

	mu   sync.Mutex          // guards what follows
	keys map[string]*watched // by the name of the record; empty without a reader
	news news                // what is read; nil before the first watch
}

// watched is a key that somebody watches.
type watched struct {
	key      string
	seen     sight
	channels map[chan struct{}]struct{} // never empty
}

func (h *hub) add(key string) (<-chan struct{}, func(), error) {
	name, freed := leaseName(key), make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	w, err := h.watched(name, key)
	if err != nil {
		return nil, nil, err
	}
	w.channels[freed] = struct{}{}
	return freed, func() { h.remove(name, w, freed) }, nil
}

// watched returns what is known of the record with this name. The news are subscribed to
// before the record is looked at for the first time, so that no change falls between.
func (h *hub) watched(name, key string) (*watched, error) {
	if h.news == nil {
		news, err := h.open()
		if err != nil {
			return nil, err
		}
		h.news = news
		h.tasks.Go(func() { h.read(news) })
	}
	if w, ok := h.keys[name]; ok {
		return w, nil
	}
	seen, err := h.look(key)
	if err != nil {
		return nil, err
	}
	w := &watched{key: key, seen: seen, channels: map[chan struct{}]struct{}{}}
	h.keys[name] = w
	return w, nil
}

// remove ends one watch. A second call finds the channel gone, and perhaps another entry
// in the place of w.
func (h *hub) remove(name string, w *watched, freed chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(w.channels, freed)
	if len(w.channels) == 0 && h.keys[name] == w {
		delete(h.keys, name)
	}
}

// close ends all watches and the reader. It waits for the reader until ctx ends.
func (h *hub) close(ctx context.Context) error {
	h.mu.Lock()
	h.lose()
	n := h.news
	h.news = nil
	h.mu.Unlock()
	if n != nil {
		n.close()
	}
	return h.tasks.Wait(ctx)
}

// lose closes every channel. h.mu is held.
func (h *hub) lose() {
	for name, w := range h.keys {
		for freed := range w.channels {
			close(freed)
		}
		delete(h.keys, name)
	}
}

// read passes news on until it is ended or the news are lost.
func (h *hub) read(n news) {
	for {
		name, ok := n.next()
		if !h.tell(n, name, ok) {
			return
		}
	}
}

// tell looks at the records that news are about: one, or all. It reports whether
// there is more to read.
func (h *hub) tell(n news, name string, ok bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.news != n {
		return false // somebody ends it, or has done so
	}
	if name != anything {
		if w := h.keys[name]; ok && w != nil {
			ok = h.update(w)
		}
	} else {
		for _, w := range h.keys {
			ok = ok && h.update(w)
		}
	}
	if !ok {
		h.lose()
		h.news = nil
		n.close()
	}
	return ok
}

// update looks at a record and signals its watchers if the key may be free. It is false
// if there is nothing left to look at. h.mu is held.
func (h *hub) update(w *watched) bool {
	before := w.seen
	var err error
	w.seen, err = h.look(w.key)
	if errors.Is(err, errGone) {
		return false
	}
	if err != nil {
		// Whoever waits for the key should meet this error.
		w.seen = sight{unreadable: true}
	}
	if w.seen.freedSince(before) {
		for freed := range w.channels {
			select {
			case freed <- struct{}{}:
			default: // a full channel says the same
			}
		}
	}
	return true
}

// sight is what watchers have to know about a record.
type sight struct {
	held            bool
	token, previous lockfx.Token
	ends            time.Time
	unreadable      bool
}

func (s *Store) sight(key string) (sight, error) {
	r, err := s.load(key)
	return sight{held: r.Held, token: r.Token, previous: r.Previous, ends: r.Ends}, err
}

// freedSince reports whether a lease may have ended, or was shortened, between the two
// sights. Only three things are certain not to free the key: nothing, a renewal, and the
// first acquisition after before.
func (now sight) freedSince(before sight) bool {
	switch {
	case now == before:
		return false
	case !now.held:
		return true
	case before.held:
		return now.token != before.token || now.ends.Before(before.ends)
	default:
		return now.previous != before.token
	}
}

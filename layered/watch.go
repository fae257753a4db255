package layered

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// checkEvery is the time between looks whether a lock file that is held is still at its
// path.
const checkEvery = time.Second

// markEvery is the time after which a file in /tmp that is held gets a new mtime: systems
// remove what is days old there.
const markEvery = time.Hour

var errMoved = errors.New("the file, or its directory, was removed, moved or replaced, so others lock another one")

// watch looks after the file of a hold: every second, and at the end. Those who come go by
// the path, and nothing can keep them from what they find there; what can be had is that
// the holder learns of it.
type watch struct {
	mu    sync.Mutex
	over  bool        // guarded by mu: there is no more to find out
	timer *time.Timer // guarded by mu
	fresh time.Time   // guarded by mu: when the file was last marked as in use
}

func (w *watch) begin(h *hold) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fresh = time.Now()
	w.timer = time.AfterFunc(checkEvery, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.look(h)
		if !w.over {
			w.timer.Reset(checkEvery)
		}
	})
}

// end looks for the last time. After it nothing is lost any more.
func (w *watch) end(h *hold) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
	w.look(h)
	w.over = true
}

// look loses h if its file is not at its path. What can't be told now is for the next
// look. w.mu is held.
func (w *watch) look(h *hold) {
	if w.over {
		return
	}
	switch in, err := h.file.InPlace(); {
	case err != nil:
	case !in:
		w.over = true
		h.lose(LayerFlock, fmt.Errorf("%w: %s", errMoved, h.place.path))
	case h.place.own && time.Since(w.fresh) >= markEvery:
		w.fresh = time.Now()
		_ = os.Chtimes(h.place.path, w.fresh, w.fresh) // if it can't be, the next look finds out
	}
}

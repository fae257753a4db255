package filestore

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// news are about changes in the directory.
type news interface {
	// next waits until a file may have changed, and returns its name, or anything when
	// each may have. It is not ok when no more news will come.
	next() (name string, ok bool)
	// close ends next, also one that waits. It may be called more than once.
	close()
}

const anything = ""

// pollInterval is how often records are looked at where the system tells no news.
const pollInterval = 100 * time.Millisecond

// subscribe returns the system's news of the directory at path, or those of polling if
// the system has none to give: it runs out of inotify instances, say. A directory that
// is gone is an error.
func subscribe(path string, newWatcher func() (*fsnotify.Watcher, error)) (news, error) {
	if w, err := newWatcher(); err == nil {
		err = w.Add(path)
		if err == nil {
			return systemNews{w, path}, nil
		}
		closeErr := w.Close()
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(errGone, err, closeErr)
		}
	}
	return poll(pollInterval), nil
}

// systemNews are told by the system, for this directory.
type systemNews struct {
	watcher *fsnotify.Watcher
	path    string
}

func (n systemNews) next() (string, bool) {
	select {
	case event, ok := <-n.watcher.Events:
		gone := event.Name == n.path && event.Has(fsnotify.Remove|fsnotify.Rename)
		return filepath.Base(event.Name), ok && !gone
	case _, ok := <-n.watcher.Errors:
		return anything, ok // too many news for the system's queue, say
	}
}

func (n systemNews) close() { _ = n.watcher.Close() } // it never fails

// poll returns news that each file may have changed, about every interval, at random so
// that processes do not look all at once.
func poll(interval time.Duration) news {
	return &polling{interval: interval, closed: make(chan struct{})}
}

type polling struct {
	interval time.Duration
	once     sync.Once
	closed   chan struct{}
}

func (p *polling) next() (string, bool) {
	timer := time.NewTimer(p.interval/2 + rand.N(p.interval))
	defer timer.Stop()
	select {
	case <-timer.C:
		return anything, true
	case <-p.closed:
		return anything, false
	}
}

func (p *polling) close() { p.once.Do(func() { close(p.closed) }) }

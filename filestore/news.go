package filestore

import (
	"errors"
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

// subscribe returns the system's news of the directory, or those of polling if the
// system has none to give: it runs out of inotify instances, say. A directory that is
// gone is an error.
func subscribe(d *directory, newWatcher func() (*fsnotify.Watcher, error)) (news, error) {
	if w, err := newWatcher(); err == nil {
		err = w.Add(d.path)
		if _, gone := d.here(); gone != nil { // so the news may be of another one
			return nil, errors.Join(gone, w.Close())
		}
		if err == nil {
			return systemNews{d, w, time.NewTicker(stillThere)}, nil
		}
		_ = w.Close() // it never fails
	}
	return poll(pollInterval), nil
}

// systemNews are told by the system, for the directory. It tells nothing when a directory
// above is moved, or when one is removed that a process has open, so that is looked after.
type systemNews struct {
	dir     *directory
	watcher *fsnotify.Watcher
	look    *time.Ticker
}

// stillThere is how often the path is looked at for whether it leads to the directory.
const stillThere = time.Second

func (n systemNews) next() (string, bool) {
	for {
		select {
		case event, ok := <-n.watcher.Events:
			gone := event.Name == n.dir.path && event.Has(fsnotify.Remove|fsnotify.Rename)
			return filepath.Base(event.Name), ok && !gone
		case _, ok := <-n.watcher.Errors:
			return anything, ok // too many news for the system's queue, say
		case <-n.look.C:
			if _, err := n.dir.here(); err != nil {
				return anything, false
			}
		}
	}
}

func (n systemNews) close() {
	n.look.Stop()
	_ = n.watcher.Close() // it never fails
}

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

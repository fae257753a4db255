package flock

import (
	"context"
	"math"
	"time"

	"github.com/lockfx/lockfx/layered/internal/pace"
)

// park is a thread that sleeps in the kernel until the lock on a path is free.
type park struct {
	file   File
	wanted bool          // guarded by Files.mu: somebody has the turn and waits
	done   chan struct{} // closed when it woke while wanted
	err    error         // set before done is closed
}

// checkEvery is the time between looks whether the file that a thread waits for is still
// at its path.
const checkEvery = time.Second

// waiting is whoever has the turn of a path that another holds.
type waiting struct {
	ctx   context.Context
	files *Files
	path  string
	looks *pace.Waiter // nil until there was no thread for it
}

func (w *waiting) end() {
	if w != nil && w.looks != nil {
		w.looks.End()
	}
}

// stepBack leaves the path to others for a moment if this process had it for long. An
// attempt that does not wait has no w, and does not.
func (w *waiting) stepBack(last pace.Turn) error {
	if w == nil {
		return nil
	}
	return last.Give(w.ctx, longestTurn)
}

// wait waits in the kernel, or, where too many do, until it is time to look again: then
// it returns no file. It owns file.
func (w *waiting) wait(file File) (File, error) {
	ctx, f, path := w.ctx, w.files, w.path
	p := f.parkFor(path, file)
	if p == nil {
		_ = giveUp(file)
		if w.looks == nil {
			w.looks = f.looks.Begin()
		}
		return nil, w.looks.Sleep(ctx, math.MaxInt64)
	}
	check := time.NewTicker(checkEvery)
	defer check.Stop()
	for {
		select {
		case <-p.done:
			return p.woken(ctx)
		case <-ctx.Done():
			if f.leave(path, p, false) {
				return nil, context.Cause(ctx)
			}
			<-p.done
			return p.woken(ctx)
		case <-check.C:
			// Whoever holds a file that is gone may hold it for long.
			if at, err := p.file.IsAt(path); err == nil && !at && f.leave(path, p, true) {
				return nil, nil
			}
		}
	}
}

// woken returns the file of p, which is locked, unless ctx has ended.
func (p *park) woken(ctx context.Context) (File, error) {
	switch {
	case p.err != nil:
		_ = p.file.Close()
		return nil, p.err
	case ctx.Err() != nil:
		_ = giveUp(p.file)
		return nil, context.Cause(ctx)
	}
	return p.file, nil
}

// leave says that nobody waits for p any more, and reports whether it still sleeps. The
// next one joins it, unless its file is gone.
func (f *Files) leave(path string, p *park, gone bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.parked[path] != p {
		return false
	}
	p.wanted = false
	if gone {
		delete(f.parked, path)
	}
	return true
}

// parkFor joins the thread that already sleeps on path, or starts one with file. It
// returns nil, and leaves file alone, if there are too many.
func (f *Files) parkFor(path string, file File) *park {
	f.mu.Lock()
	if p := f.parked[path]; p != nil {
		p.wanted = true
		f.mu.Unlock()
		f.keep(path, file, pace.Turn{})
		return p
	}
	defer f.mu.Unlock()
	if f.asleep >= maxParked {
		return nil
	}
	p := &park{file: file, wanted: true, done: make(chan struct{})}
	if f.parked == nil {
		f.parked = make(map[string]*park)
	}
	f.parked[path] = p
	f.asleep++
	go f.sleep(path, p)
	return p
}

func (f *Files) sleep(path string, p *park) {
	p.err = p.file.Lock()
	f.mu.Lock()
	f.asleep--
	if f.parked[path] == p {
		delete(f.parked, path)
	}
	wanted := p.wanted
	f.mu.Unlock()
	if wanted {
		close(p.done)
		return
	}
	_ = giveUp(p.file)
}

// Parked returns how many threads sleep in the kernel now.
func (f *Files) Parked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asleep
}

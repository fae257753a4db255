package flock

import "context"

// park is a thread that sleeps in the kernel until the lock on a path is free.
type park struct {
	file   File
	wanted bool          // guarded by Files.mu: somebody has the turn and waits
	done   chan struct{} // closed when it woke while wanted
	err    error         // set before done is closed
}

// wait waits in the kernel for whoever has the turn of path. It owns file.
func (f *Files) wait(ctx context.Context, path string, file File) (File, error) {
	p := f.parkFor(path, file)
	select {
	case <-p.done:
	case <-ctx.Done():
		f.mu.Lock()
		asleep := f.parked[path] == p
		if asleep {
			p.wanted = false
		}
		f.mu.Unlock()
		if asleep {
			return nil, context.Cause(ctx)
		}
		<-p.done
	}
	switch {
	case p.err != nil:
		_ = p.file.Close()
		return nil, p.err
	case ctx.Err() != nil:
		giveUp(p.file)
		return nil, context.Cause(ctx)
	}
	return p.file, nil
}

// parkFor joins the thread that already sleeps on path, or starts one with file.
func (f *Files) parkFor(path string, file File) *park {
	f.mu.Lock()
	if p := f.parked[path]; p != nil {
		p.wanted = true
		f.mu.Unlock()
		f.keep(path, file)
		return p
	}
	p := &park{file: file, wanted: true, done: make(chan struct{})}
	if f.parked == nil {
		f.parked = make(map[string]*park)
	}
	f.parked[path] = p
	f.mu.Unlock()
	go f.sleep(path, p)
	return p
}

func (f *Files) sleep(path string, p *park) {
	p.err = p.file.Lock()
	f.mu.Lock()
	delete(f.parked, path)
	wanted := p.wanted
	f.mu.Unlock()
	if wanted {
		close(p.done)
		return
	}
	giveUp(p.file)
}

// giveUp unlocks before it closes: a child that is just being started shares the
// descriptor until it runs its program, and so long closing ours frees nothing.
func giveUp(file File) {
	_ = file.Unlock()
	_ = file.Close()
}

// Parked returns how many threads sleep in the kernel now.
func (f *Files) Parked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.parked)
}

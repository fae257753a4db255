package flock

import "github.com/lockfx/lockfx/layered/internal/pace"

// maxIdle bounds the descriptors that are kept open although nobody uses them.
const maxIdle = 64

// idleFiles are open files that are not locked. The one that was used longest ago
// goes first. A file in use is not among them, so it is never closed in use.
type idleFiles struct {
	files map[string]idleFile
	uses  uint64
}

type idleFile struct {
	file File
	turn pace.Turn // the last one
	use  uint64
}

func (c *idleFiles) take(path string) (kept idleFile, ok bool) {
	kept, ok = c.files[path]
	delete(c.files, path)
	return kept, ok
}

// put keeps file and returns the files that have to be closed for it.
func (c *idleFiles) put(path string, file File, turn pace.Turn) (out []File) {
	if c.files == nil {
		c.files = make(map[string]idleFile)
	}
	if same, ok := c.take(path); ok {
		out = append(out, same.file)
	}
	if len(c.files) >= maxIdle {
		oldest, _ := c.take(c.oldest())
		out = append(out, oldest.file)
	}
	c.uses++
	c.files[path] = idleFile{file, turn, c.uses}
	return out
}

func (c *idleFiles) oldest() (path string) {
	least := c.uses + 1
	for p, kept := range c.files {
		if kept.use < least {
			path, least = p, kept.use
		}
	}
	return path
}

// open returns the file at path with the last turn, and whether it was opened just now.
func (f *Files) open(path string) (_ File, _ pace.Turn, opened bool, err error) {
	f.mu.Lock()
	kept, ok := f.idle.take(path)
	f.mu.Unlock()
	if ok {
		return kept.file, kept.turn, false, nil
	}
	open := Open
	if f.OpenFile != nil {
		open = f.OpenFile
	}
	file, err := open(path)
	return file, pace.Turn{}, true, err
}

func (f *Files) keep(path string, file File, turn pace.Turn) {
	f.mu.Lock()
	out := f.idle.put(path, file, turn)
	f.mu.Unlock()
	for _, file := range out {
		_ = file.Close() // an unlocked file without content loses nothing
	}
}

// CloseIdle closes the descriptors that nobody uses.
func (f *Files) CloseIdle() {
	f.mu.Lock()
	kept := f.idle.files
	f.idle.files = nil
	f.mu.Unlock()
	for _, k := range kept {
		_ = k.file.Close()
	}
}

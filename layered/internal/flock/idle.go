package flock

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
	use  uint64
}

func (c *idleFiles) take(path string) File {
	kept, ok := c.files[path]
	if !ok {
		return nil
	}
	delete(c.files, path)
	return kept.file
}

// put keeps file and returns the files that have to be closed for it.
func (c *idleFiles) put(path string, file File) (out []File) {
	if c.files == nil {
		c.files = make(map[string]idleFile)
	}
	if same := c.take(path); same != nil {
		out = append(out, same)
	}
	if len(c.files) >= maxIdle {
		out = append(out, c.take(c.oldest()))
	}
	c.uses++
	c.files[path] = idleFile{file, c.uses}
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

func (f *Files) open(path string) (File, error) {
	f.mu.Lock()
	file := f.idle.take(path)
	f.mu.Unlock()
	if file != nil {
		return file, nil
	}
	if f.OpenFile != nil {
		return f.OpenFile(path)
	}
	return Open(path)
}

func (f *Files) keep(path string, file File) {
	f.mu.Lock()
	out := f.idle.put(path, file)
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

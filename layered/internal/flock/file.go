package flock

// File is an open lock file, as a system has it.
type File interface {
	// TryLock makes one attempt that does not wait; false means held by another.
	TryLock() (bool, error)
	// Lock waits until the lock is this file's. Nothing ends it early.
	Lock() error
	Unlock() error
	// Close closes the file, and thereby unlocks it.
	Close() error
	// IsAt reports whether path still names this very file.
	IsAt(path string) (bool, error)
}

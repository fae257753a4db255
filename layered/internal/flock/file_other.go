//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package flock

import (
	"errors"
	"os"
)

// lockCall is the system call in errors of taking a lock.
const lockCall = "flock"

// Open returns an error that matches errors.ErrUnsupported.
func Open(string) (File, error) { return nil, os.NewSyscallError(lockCall, errors.ErrUnsupported) }

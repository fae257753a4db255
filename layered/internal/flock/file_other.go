//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package flock

import (
	"errors"
	"io/fs"
)

// Open returns an error that matches errors.ErrUnsupported.
func Open(path string) (File, error) {
	return nil, &fs.PathError{Op: "flock", Path: path, Err: errors.ErrUnsupported}
}

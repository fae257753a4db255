//go:build !unix

package owner

import (
	"io/fs"
	"os"
)

// Check believes all files: the system's access lists say who shares them.
func Check(string, fs.FileInfo) error { return nil }

// MakeDir makes the directory at path, and its parents, where they are missing.
func MakeDir(path string) error { return os.MkdirAll(path, 0o700) }

package layered

import (
	"io/fs"
	"path/filepath"

	"github.com/lockfx/lockfx/layered/internal/owner"
)

// userDir does not depend on TEMP, of which processes of one user may have different ones.
func userDir() string {
	data := owner.LocalData()
	if data == "" {
		return ""
	}
	return filepath.Join(data, "lockfx")
}

func checkOwner(string, fs.FileInfo) error { return nil }

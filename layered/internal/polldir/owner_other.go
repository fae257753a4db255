//go:build !unix

package polldir

import "io/fs"

// ownedByUs accepts everything: the access rights of a directory are not seen here.
func ownedByUs(fs.FileInfo) error { return nil }

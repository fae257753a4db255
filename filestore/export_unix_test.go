//go:build unix

package filestore

// CheckDir is the check of a directory's owner and mode.
var CheckDir = checkDir

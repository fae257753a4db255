package owner

import "golang.org/x/sys/windows"

// LocalData returns the directory for data of this user on this machine, or "" if the
// system can't tell it.
func LocalData() string {
	dir, _ := windows.KnownFolderPath(windows.FOLDERID_LocalAppData, windows.KF_FLAG_DEFAULT)
	return dir
}

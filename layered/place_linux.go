package layered

import (
	"errors"
	"os"
	"strings"
	"sync"
)

var errOwnTemp = errors.New("/tmp of this process is not that of the system, as with PrivateTmp of systemd, " +
	"so processes of this user that see another /tmp would not be excluded")

// checkTemp returns an error if this process has a /tmp of its own. A container has one
// too, but there it comes with a root of its own, and is that of its first process.
var checkTemp = sync.OnceValue(func() error {
	own, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil // without /proc nothing can be told
	}
	first, _ := os.ReadFile("/proc/1/mountinfo") // may be hidden
	if ownTemp(string(own), string(first)) {
		return errOwnTemp
	}
	return nil
})

// ownTemp compares the mounts of a process with those of the first process.
func ownTemp(own, first string) bool {
	root, temp := mountsOf(own)
	firstRoot, firstTemp := mountsOf(first)
	return strings.Contains(temp, "/systemd-private-") || root != "" && root == firstRoot && temp != firstTemp
}

// mountsOf returns what is mounted at / and at /tmp, by device and directory.
func mountsOf(mountinfo string) (root, temp string) {
	for line := range strings.Lines(mountinfo) {
		// 36 35 98:0 /directory/of/device /mounted/here rw,noatime ...
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		switch what := fields[2] + fields[3]; fields[4] {
		case "/":
			root = what
		case "/tmp":
			temp = what
		}
	}
	return root, temp
}

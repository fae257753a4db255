package server

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
)

// Find returns the path of a program: from PATH, or else the last match of the
// given patterns of [filepath.Glob]. A missing program is an error, in every
// environment.
func Find(program string, patterns ...string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		if len(found) > 0 {
			return slices.Max(found), nil
		}
	}
	return "", fmt.Errorf("%s is not installed: scripts/install-servers.sh installs it, or says how to", program)
}

// TempDir returns a fresh folder with a path short enough for a Unix socket, and
// what removes it.
func TempDir() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp("", "lockfx")
	if err != nil {
		return "", nil, err
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}

// FreePorts returns n different ports of the loopback interface that nobody listens
// on. Another process can take one before it is used, so a start that depends on
// them is tried again with others.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", Loopback(0))
		if err != nil {
			return nil, err
		}
		defer l.Close() //nolint:errcheck // it was never used
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

// Loopback returns the address of a port on the loopback interface.
func Loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

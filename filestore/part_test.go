package filestore_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// A test that needs other processes starts this program again with a part to play. The
// part gets its arguments in the environment.
const (
	partVariable = "FILESTORE_TEST_PART"
	dirVariable  = "FILESTORE_TEST_DIR"
	argVariable  = "FILESTORE_TEST_ARG"
)

// parts are what another process can do. Each returns what went wrong.
var parts = map[string]func(dir, arg string) error{}

func play(part string) (status int) {
	err := parts[part](os.Getenv(dirVariable), os.Getenv(argVariable))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// process returns the command that plays a part.
func process(t testing.TB, part, dir, arg string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if parts[part] == nil {
		t.Fatalf("no part %q", part)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), partVariable+"="+part, dirVariable+"="+dir, argVariable+"="+arg)
	return cmd
}

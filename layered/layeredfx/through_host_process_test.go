package layeredfx_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
	"github.com/lockfx/lockfx/layered"
	"github.com/lockfx/lockfx/layered/layeredfx"
)

// A test with a second process runs the test binary again, with the directory of the
// lock files in the environment. It holds the lock until its input ends.
const dirVariable = "THROUGH_HOST_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(dirVariable); dir != "" {
		if err := holdForParent(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func holdForParent(dir string) error {
	lock, err := fxlock.New(fxlock.WithKey(hostKey), fxlock.WithTTL(time.Minute), fxlock.WithStore(fxlock.NewMemoryStore()),
		layeredfx.ThroughHost(layered.WithDir(dir)))
	if err != nil {
		return err
	}
	err = lock.Do(context.Background(), func(context.Context, lockfx.Holder) error {
		fmt.Println("held")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		return nil
	})
	return errors.Join(err, lock.Dispose(context.Background()))
}

func TestAnotherProcessOfTheHostIsQueuedForBeforeTheStoreIs(t *testing.T) {
	dir := t.TempDir()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), dirVariable+"="+dir)
	input, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(output).ReadString('\n'); line != "held\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}

	// Their stores are not the same: it is the host that a run waits for, and the store that
	// decides.
	store := newAskedStore()
	var gate string
	lock := replica(t, store, layeredfx.ThroughHost(layered.WithDir(dir)), fxlock.Observer(func(e lockfx.Event) { gate = e.Gate }))
	if err := lock.Do(t.Context(), doNothing); err != nil || !strings.Contains(gate, "(flock layer)") {
		t.Errorf("one try: %v, past %q", err, gate)
	}
	gate = ""
	waited := make(chan error)
	go func() { waited <- lock.Do(t.Context(), doNothing, fxlock.WaitForever()) }()
	if err := input.Close(); err != nil {
		t.Error(err)
	}
	if err := <-waited; err != nil || !strings.Contains(gate, "flock on") {
		t.Errorf("when the other leaves: %v, past %q", err, gate)
	}
	if asked, _ := store.counts(); asked != 2 {
		t.Errorf("the store was asked %d times, of which none should be while a run waited for the host", asked)
	}
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
}

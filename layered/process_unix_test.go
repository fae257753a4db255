//go:build unix

package layered

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"
)

func TestPausedHolderLearnsOfItsLoss(t *testing.T) {
	pauseAndTakeOver(t)
}

// pauseAndTakeOver stops a holder for longer than its lock can stay unrefreshed,
// takes the lock over, and lets the holder go on while it is held.
func pauseAndTakeOver(t *testing.T) {
	r := role{Do: "hold", Dir: t.TempDir(), Scope: processScopes["poll"], Stale: 2 * time.Second}
	a := start(t, r)
	a.expect("held")
	must(t, a.cmd.Process.Signal(syscall.SIGSTOP))
	_, err := WithLock(t.Context(), 0, func(_ context.Context, call Call[int]) (int, error) {
		must(t, a.cmd.Process.Signal(syscall.SIGCONT))
		a.expect("lost ")
		a.expect("told of the loss")
		a.wait()
		_, err := os.Stat(call.Lock.File + pollSuffix)
		return 0, err
	}, r.options()...)
	acquired(t, err)
}

// Another holds flock. To skip it would let two in.
func TestShortageIsNoReasonToSkipFlock(t *testing.T) {
	r := role{Do: "hold", Dir: t.TempDir()}
	a := start(t, r)
	a.expect("held")
	var before syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	none := before
	none.Cur = 0
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	res, err := WithLock(t.Context(), 0, nothing[int], r.options()...)
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before))
	var layer *LayerError
	if !errors.Is(err, syscall.EMFILE) || !errors.As(err, &layer) || layer.Layer != LayerFlock || res.State == StateExecuted {
		t.Errorf("%v, %v; want too many open files, of the flock layer", res.State, err)
	}
	a.tell()
	a.expect("releasing ")
	a.wait()
}

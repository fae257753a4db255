//go:build unix

package layered

import (
	"context"
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

package pause_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lockfx/lockfx/examples/fxapp/pause"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// diary notes what happened, and when.
type diary struct {
	mu    sync.Mutex
	begun time.Time
	notes []string
}

func newDiary() *diary { return &diary{begun: time.Now()} }

func (d *diary) note(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notes = append(d.notes, what+" at "+time.Since(d.begun).String())
}

func (d *diary) want(t *testing.T, notes ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.notes, notes) {
		t.Errorf("got  %q\nwant %q", d.notes, notes)
	}
}

func TestTimersOfARunningProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d := pause.NewProcess(), newDiary()
		p.AfterFunc(time.Second, func() { d.note("timer") })
		stopped := p.AfterFunc(time.Second, func() { d.note("stopped timer") })
		if !stopped.Stop() || stopped.Stop() {
			t.Error("a timer can be stopped once")
		}
		if err := p.Checkpoint(t.Context(), func() error { d.note("next"); return nil }); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		d.want(t, "next at 0s", "timer at 1s")
		if !p.Now().Equal(time.Now()) {
			t.Error("the clock is wrong")
		}
	})
}

func TestNothingRunsWhileStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d := pause.NewProcess(), newDiary()
		stop := p.StopAtCheckpoint()
		p.AfterFunc(1*time.Second, func() { d.note("timer before the stop") })
		p.AfterFunc(2*time.Second, func() { d.note("overdue timer") })
		cancelled := p.AfterFunc(3*time.Second, func() { d.note("cancelled timer") })
		p.AfterFunc(9*time.Second, func() { d.note("timer after the stop") })
		failed := errors.New("failed")
		ended := make(chan error)
		time.Sleep(1500 * time.Millisecond)
		go func() {
			ended <- p.Checkpoint(t.Context(), func() error {
				d.note("next")
				time.Sleep(time.Second)
				d.note("end of next")
				return failed
			})
		}()
		<-stop.Reached()
		d.want(t, "timer before the stop at 1s")
		time.Sleep(3500 * time.Millisecond)
		if !cancelled.Stop() || cancelled.Stop() {
			t.Error("an overdue timer can be stopped once")
		}
		stop.Resume()
		stop.Resume()
		if err := <-ended; !errors.Is(err, failed) {
			t.Errorf("got error %v", err)
		}
		time.Sleep(10 * time.Second)
		d.want(
			t, "timer before the stop at 1s", "next at 5s", "end of next at 6s",
			"overdue timer at 6s", "timer after the stop at 9s",
		)
	})
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d := pause.NewProcess(), newDiary()
		p.Wait()
		for range 2 {
			p.AfterFunc(time.Second, func() {
				time.Sleep(time.Second)
				d.note("end of a callback")
			})
		}
		time.Sleep(1500 * time.Millisecond)
		p.Wait()
		d.want(t, "end of a callback at 2s", "end of a callback at 2s")
	})
}

func TestAStopIsForOneCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d := pause.NewProcess(), newDiary()
		stop := p.StopAtCheckpoint()
		stop.Resume() // before it was reached: no stop at all
		for range 2 {
			if err := p.Checkpoint(t.Context(), func() error { d.note("next"); return nil }); err != nil {
				t.Error(err)
			}
		}
		<-stop.Reached()
		d.want(t, "next at 0s", "next at 0s")
	})
}

func TestTheEndOfAContextEndsAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d := pause.NewProcess(), newDiary()
		p.StopAtCheckpoint()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := p.Checkpoint(ctx, func() error { d.note("next"); return ctx.Err() })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v", err)
		}
		d.want(t, "next at 1m0s")
	})
}

package notify_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lockfx/lockfx/fxlock/internal/notify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ear is what a subscriber hears.
type ear struct {
	mu    sync.Mutex // guards heard
	heard []string
}

func (e *ear) hear(event, missed int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	line := fmt.Sprint(event)
	if missed > 0 {
		line += fmt.Sprintf(" after %d more", missed)
	}
	e.heard = append(e.heard, line)
}

func (e *ear) expect(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Equal(e.heard, want) {
		t.Errorf("heard %q, want %q", e.heard, want)
	}
}

func TestTell_ReachesEachInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h notify.Hub[int]
		var one, two ear
		stop := h.Subscribe("one", one.hear)
		h.Notify(1)
		h.Subscribe("two", two.hear)
		h.Notify(2)
		h.Notify(3)
		one.expect(t, "1", "2", "3")
		two.expect(t, "1", "2", "3")
		stop()
		stop()
		h.Notify(4)
		one.expect(t, "1", "2", "3")
		two.expect(t, "1", "2", "3", "4")
	})
}

// What NotifyAlso passed last is part of the present state until the next Notify.
func TestSubscribe_BeginsWithThePresentState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h notify.Hub[int]
		for _, step := range []struct {
			tell func(int)
			e    int
			want []string
		}{
			{h.Notify, 1, []string{"1"}},
			{h.NotifyAlso, 2, []string{"1", "2"}},
			{h.NotifyAlso, 3, []string{"1", "3"}},
			{h.Notify, 4, []string{"4"}},
		} {
			step.tell(step.e)
			var late ear
			h.Subscribe("late", late.hear)
			late.expect(t, step.want...)
		}
	})
}

// One that does not return misses the oldest events, hears how many, and shows.
func TestABlockedSubscriber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h notify.Hub[int]
		var slow, quick ear
		release := make(chan struct{})
		h.Subscribe("slow", func(e, missed int) {
			slow.hear(e, missed)
			<-release
		})
		h.Subscribe("quick", quick.hear)
		const all = notify.Queue + 4
		var want []string
		for i := range all {
			h.Notify(i)
			want = append(want, fmt.Sprint(i))
			synctest.Wait()
		}
		quick.expect(t, want...)
		time.Sleep(time.Minute)
		if err := h.Blocked(time.Minute); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if err := h.Blocked(time.Minute); err == nil || err.Error() != "slow has not returned for 1m1s" {
			t.Error(err)
		}
		close(release)
		slow.expect(t, append([]string{"0", "4 after 3 more"}, want[5:]...)...)
		if err := h.Blocked(0); err != nil {
			t.Error(err)
		}
	})
}

// A function that ends its goroutine is called again.
func TestAGoexitEndsOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h notify.Hub[int]
		var e ear
		h.Subscribe("exits", func(event, missed int) {
			e.hear(event, missed)
			runtime.Goexit()
		})
		h.Notify(1)
		h.Notify(2)
		e.expect(t, "1", "2")
		if err := h.Blocked(0); err != nil {
			t.Error(err)
		}
	})
}

// A subscriber may end its own subscription: what is queued is not told any more.
func TestStop_ByTheSubscriberItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h notify.Hub[int]
		var e ear
		var stop func()
		stop = h.Subscribe("self", func(event, missed int) {
			e.hear(event, missed)
			stop()
		})
		h.Notify(1)
		h.Notify(2)
		e.expect(t, "1")
	})
}

// Drain waits for those that hear, and not for those that are blocked.
func TestDrain(t *testing.T) {
	const patience = 5 * time.Second
	for name, tt := range map[string]struct {
		takes, since time.Duration // of a call, and how long ago it began
		calls        int
		done         time.Duration // when the drain is given up, or 0
		want         time.Duration
	}{
		"nothing to hear":        {want: 0},
		"they hear":              {takes: time.Second, calls: 3, want: 3 * time.Second},
		"one is blocked":         {takes: time.Hour, calls: 1, want: patience},
		"one has been for long":  {takes: time.Hour, calls: 1, since: time.Minute, want: 0},
		"the drain is given up":  {takes: time.Hour, calls: 1, done: time.Second, want: time.Second},
		"one has been for a bit": {takes: time.Hour, calls: 1, since: time.Second, want: patience - time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var h notify.Hub[int]
				h.Subscribe("one", func(int, int) { time.Sleep(tt.takes) })
				for i := range tt.calls {
					h.Notify(i)
				}
				time.Sleep(tt.since)
				done := make(chan struct{})
				if tt.done > 0 {
					time.AfterFunc(tt.done, func() { close(done) })
				}
				begun := time.Now()
				h.Drain(done, patience)
				if took := time.Since(begun); took < tt.want || took > tt.want+time.Millisecond {
					t.Errorf("it took %v, want %v", took, tt.want)
				}
				time.Sleep(time.Hour)
			})
		})
	}
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/lockfx/lockfx"
)

// takeover pauses a holder past its lease. Another one takes over and writes; then
// the first one goes on, and its write is refused.
func (s *story) takeover(ctx context.Context) error {
	s.out.title("2. A holder is paused past its lease, as SIGSTOP or a suspended machine does it")
	paused, other := s.running[0], s.running[1]
	pause := paused.process.StopAtCheckpoint()
	late := make(chan error, 1)
	go func() { late <- s.report(ctx, paused) }()
	select {
	case <-pause.Reached():
	case err := <-late:
		return fmt.Errorf("%s: %w", paused.name, err)
	}
	s.out.say(paused.name, "IS PAUSED just before it writes: no heartbeat, no timer, no code runs")

	err := s.insist(ctx, other)
	mark, markErr := s.mark()
	if err = errors.Join(err, markErr); err == nil {
		s.out.say(paused.name, "GOES ON. It knows nothing of all this, and writes")
	}
	pause.Resume()
	lateErr := <-late
	if err != nil {
		return fmt.Errorf("%s: %w", other.name, err)
	}
	return s.checkRefused(lateErr, mark)
}

// insist makes a write the report as soon as it gets the lease, which it should at
// the second attempt.
func (s *story) insist(ctx context.Context, a *actor) error {
	err := s.report(ctx, a)
	for range 4 {
		var busy *lockfx.NotAcquiredError
		if !errors.As(err, &busy) || ctx.Err() != nil {
			break
		}
		s.out.say(a.name, "tries again when that time is over")
		sleep(ctx, busy.RetryAfter)
		err = s.report(ctx, a)
	}
	return err
}

var errNone = errors.New("none")

// checkRefused checks that a late write ended with err because its token is stale,
// and left the report that carries the token mark.
func (s *story) checkRefused(err error, mark lockfx.Token) error {
	if !errors.Is(err, lockfx.ErrStaleToken) {
		return fmt.Errorf("a late write was not refused as stale; its error is %w", cmp.Or(err, errNone))
	}
	now, err := s.mark()
	if err != nil {
		return err
	}
	if now != mark {
		return fmt.Errorf("a late write was refused, but the token of the report is %d instead of %d", now, mark)
	}
	s.out.say("the report", "is still the one with token %d", mark)
	return nil
}

// leave stops a replica in the middle of its report.
func (s *story) leave(ctx context.Context) error {
	last := len(s.running) - 1
	a := s.running[last]
	s.out.title("3. A replica is stopped in the middle of its report: what was built last stops first")
	select {
	case <-a.read: // from an earlier report
	default:
	}
	ended := make(chan error, 1)
	go func() { ended <- s.report(ctx, a) }()
	select {
	case <-a.read:
	case err := <-ended:
		return fmt.Errorf("%s: %w", a.name, err)
	}
	s.out.say(a.name, "IS TOLD TO STOP")
	s.running = s.running[:last]
	err := a.stop(s.out)
	s.out.say(a.name, "had to end its report: %v", <-ended)
	return err
}

package filestore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// Pauses between two tries for a guard file. A guard is held for as long as it takes to
// write two small files, which is milliseconds, so a try costs less than what it
// might save to be woken. In return nothing is left behind when ctx ends: a thread that
// waits inside flock(2) could not be called back.
const (
	shortestPause = 100 * time.Microsecond
	longestPause  = 10 * time.Millisecond

	// patience bounds the wait for a guard. Whoever keeps one for that long was stopped
	// in the middle of a section, by SIGSTOP or a debugger, or waits for a disk.
	patience = 5 * time.Second
)

var errBusy = errors.New("another process has kept it locked for too long: a process that was stopped, which lslocks(8) names, or a disk that hangs")

// guard waits for a guard file, for as long as within and until ctx ends, and takes it:
// no other process, and no other goroutine, is then in a section under the same guard. A
// process that dies gives its guards back, by the system's care.
func (d *directory) guard(ctx context.Context, guard int, within time.Duration) (release func(), err error) {
	limit := time.NewTimer(within)
	defer limit.Stop()
	// The goroutines of this store queue up here, first come, first served: only one
	// of them competes with the other processes.
	select {
	case d.turns[guard] <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for %s: %w", guardName(guard), context.Cause(ctx))
	case <-limit.C:
		return nil, fmt.Errorf("wait for %s: %w", guardName(guard), errBusy)
	}
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		f, err := d.tryGuardFile(guardName(guard))
		if f != nil {
			return d.releaser(guard, f), nil
		}
		if err == nil {
			err = sleep(ctx, limit.C, pause/2+rand.N(pause/2))
		}
		if err != nil {
			<-d.turns[guard]
			return nil, fmt.Errorf("wait for %s: %w", guardName(guard), err)
		}
	}
}

// tryGuard takes a guard file if nobody has it.
func (d *directory) tryGuard(guard int) (release func(), ok bool) {
	select {
	case d.turns[guard] <- struct{}{}:
	default:
		return nil, false
	}
	f, err := d.tryGuardFile(guardName(guard))
	if f == nil || err != nil {
		<-d.turns[guard]
		return nil, false
	}
	return d.releaser(guard, f), true
}

func (d *directory) releaser(guard int, f *os.File) func() {
	return func() {
		// Nothing was written to f, and a lock that can't be given back ends with the
		// descriptor.
		_ = unlock(f)
		_ = f.Close()
		<-d.turns[guard]
	}
}

// tryGuardFile returns the guard file if it could be locked, and nil if it is locked or
// has yet to be made.
//
// Guard files are never removed by the store. If somebody else removed this one, the
// lock is worth nothing: the next one to come would make and lock another file.
func (d *directory) tryGuardFile(name string) (*os.File, error) {
	f, err := d.open(name)
	if missing(err) {
		if err := d.makeGuard(name); err != nil {
			return nil, err
		}
		if f, err = d.open(name); missing(err) {
			return nil, nil
		}
	}
	if err != nil {
		return nil, err
	}
	d.at("lock", f, nil)
	locked, err := tryLock(f)
	if err == nil && locked {
		var mine, there os.FileInfo
		if mine, err = f.Stat(); err == nil {
			there, err = d.root.Lstat(name)
		}
		if err == nil && os.SameFile(mine, there) {
			return f, nil
		}
		err = ignoreMissing(err)
	}
	return nil, errors.Join(err, f.Close())
}

// sleep waits for pause to be over, for ctx to end, or for the limit.
func sleep(ctx context.Context, limit <-chan time.Time, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-limit:
		return errBusy
	}
}

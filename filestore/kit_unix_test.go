//go:build unix

package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
	"github.com/lockfx/lockfx/internal/storemodel"
	"github.com/lockfx/lockfx/storetest"
)

// The kit waits out leases by moving the clock of the stores, so no pause of a busy machine
// can make a lease expire. All else happens in real time.
func TestConformance(t *testing.T) {
	for name, opts := range map[string][]filestore.Option{
		"news of the system": nil,
		"polling":            {filestore.WithPolling(5 * time.Millisecond)},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func() (*storetest.Harness, error) { return harness(t, opts...) })
		})
	}
}

// ticking is a clock that goes on a little with each reading, as every real one does.
type ticking struct{ storemodel.Clock }

func (c *ticking) Now() time.Time { c.Advance(10 * time.Microsecond); return c.Clock.Now() }

func harness(t testing.TB, opts ...filestore.Option) (*storetest.Harness, error) {
	dir, c := newDir(t), new(ticking)
	opts = append(opts, filestore.WithNow(c.Now))
	again := func() (lockfx.Store, error) { return open(t, dir, opts...), nil }
	s, err := again()
	return &storetest.Harness{
		Store: s, TTL: time.Second, Resolution: time.Millisecond,
		Late:   time.Millisecond, // the ticks of the clock while the kit looks
		Sleep:  c.Advance,
		Second: again, Restart: again,
		StepClock: func(d time.Duration) error {
			c.Advance(d)
			return nil
		},
		LoseData: func() (lockfx.Store, error) {
			for _, file := range filesIn(t, dir, "*") {
				if err := os.Remove(file); err != nil {
					return nil, err
				}
			}
			return again()
		},
		Partition: func() (func(), error) {
			away := filepath.Clean(dir) + ".away"
			heal := func() {
				if err := os.Rename(away, dir); err != nil {
					t.Error(err)
				}
			}
			return heal, os.Rename(dir, away)
		},
		Crash: func(_ context.Context, key string, ttl time.Duration) (lockfx.Token, error) {
			out, err := process(t, "crash while holding", dir, fmt.Sprint(c.Now().UnixNano(), " ", int64(ttl), " ", key)).Output()
			if !killed(err) {
				return 0, errors.Join(errors.New("the process was not killed: "+string(out)), err)
			}
			token, err := strconv.ParseInt(string(out), 10, 64)
			return lockfx.Token(token), err
		},
	}, err
}

func init() {
	parts["crash while holding"] = func(dir, arg string) error {
		args := strings.SplitN(arg, " ", 3)
		now, err := strconv.ParseInt(args[0], 10, 64)
		if err != nil {
			return err
		}
		ttl, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil {
			return err
		}
		s, err := filestore.New(dir, filestore.WithNow(func() time.Time { return time.Unix(0, now) }))
		if err != nil {
			return err
		}
		g, err := s.Acquire(ctx, args[2], time.Duration(ttl))
		if err := mustBeTrue(g.OK, err); err != nil {
			return err
		}
		if _, err := os.Stdout.WriteString(g.Token.String()); err != nil {
			return err
		}
		killMyself()
		return nil
	}
}

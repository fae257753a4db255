//go:build unix

package filestore_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
	"github.com/lockfx/lockfx/storetest"
)

func TestConformance(t *testing.T) {
	for name, opts := range map[string][]filestore.Option{
		"news of the system": nil,
		"polling":            {filestore.WithPolling(5 * time.Millisecond)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits most of the time
			storetest.Run(t, func() (*storetest.Harness, error) { return harness(t, opts...) })
		})
	}
}

func harness(t testing.TB, opts ...filestore.Option) (*storetest.Harness, error) {
	dir := newDir(t)
	again := func() (lockfx.Store, error) { return open(t, dir, opts...), nil }
	s, err := again()
	return &storetest.Harness{
		Store: s, TTL: 200 * time.Millisecond, Resolution: time.Millisecond,
		Second: again, Restart: again,
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
			out, err := process(t, "crash while holding", dir, ttl.String()+" "+key).Output()
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
		ttl, key, _ := strings.Cut(arg, " ")
		d, err := time.ParseDuration(ttl)
		if err != nil {
			return err
		}
		s, err := filestore.New(dir)
		if err != nil {
			return err
		}
		g, err := s.Acquire(context.Background(), key, d)
		if err != nil || !g.OK {
			return errors.Join(errors.New("not acquired"), err)
		}
		if _, err := os.Stdout.WriteString(g.Token.String()); err != nil {
			return err
		}
		killMyself()
		return nil
	}
}

//go:build unix

package layered

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfx/lockfx"
)

// Nothing keeps the next one from locking what it finds at the path. The holder learns
// of it: within a second, and at the latest when it returns.
func TestFlock_TwoHoldersAreNeverSilent(t *testing.T) {
	for how, replace := range map[string]func(dir, file string) error{
		"the file removed":      func(_, file string) error { return os.Remove(file) },
		"the directory removed": func(dir, _ string) error { return os.RemoveAll(dir) },
		"the directory moved":   func(dir, _ string) error { return os.Rename(dir, dir+".old") },
		"a link switched": func(dir, _ string) error {
			return errors.Join(os.Remove(dir+"/../current"), os.Mkdir(dir+".new", 0o700), os.Symlink(dir+".new", dir+"/../current"))
		},
	} {
		for _, after := range []time.Duration{0, time.Second, time.Hour} {
			base := t.TempDir()
			dir := filepath.Join(base, "locks")
			must(t, os.Mkdir(dir, 0o700))
			must(t, os.Symlink(dir, filepath.Join(base, "current")))
			synctest.Test(t, func(t *testing.T) {
				useFiles(t, nil)
				one, two := newLocker(t, WithDir(filepath.Join(base, "current"))), newLocker(t, WithDir(filepath.Join(base, "current")))
				opts := []Option{WithKey("k"), WithScope(Scope{Worker: Off})}
				// A path is held once in a process; this is what another process does.
				ours := files
				res, err := WithLock(t.Context(), 0, func(ctx context.Context, call Call[int]) (string, error) {
					must(t, replace(dir, call.Lock.File))
					if how == "the directory removed" || how == "the directory moved" {
						must(t, os.MkdirAll(dir, 0o700))
					}
					useFiles(t, nil)
					_, err := WithLock(t.Context(), 0, nothing[int], append(opts, WithLocker(two))...)
					must(t, err)
					files.CloseIdle()
					files = ours
					time.Sleep(after)
					synctest.Wait()
					if told := errors.Is(context.Cause(ctx), lockfx.ErrLost); told != (after > 0) {
						t.Errorf("%s: %v later, its context has ended: %v", how, after, told)
					}
					return call.Lock.File, nil
				}, append(opts, WithLocker(one))...)
				var lost *LostError
				if !errors.As(err, &lost) || lost.Layer != LayerFlock || lost.Key != "k" || !strings.Contains(err.Error(), res.Value) {
					t.Errorf("%s: err = %v", how, err)
				}
				ours.CloseIdle()
				time.Sleep(time.Hour)
			})
		}
	}
}

func TestFlock_HeldForADayIsNotLost(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		useFiles(t, nil)
		_, err := WithLock(t.Context(), 0, func(ctx context.Context, _ Call[int]) (int, error) {
			time.Sleep(24 * time.Hour)
			return 0, ctx.Err()
		}, WithKey("k"), WithDir(dir))
		must(t, err)
		files.CloseIdle()
		time.Sleep(time.Hour) // nothing is left that looks
	})
}

// Systems remove what lies in /tmp for days.
func TestFlock_KeepsAHeldFileInTheDefaultDirectoryFresh(t *testing.T) {
	useTempRoot(t)
	t.Setenv("LOCKFX_LOCK_DIR", "")
	t.Setenv("LOQKIT_LOCK_DIR", "")
	synctest.Test(t, func(t *testing.T) {
		useFiles(t, nil)
		_, err := WithLock(t.Context(), 0, func(_ context.Context, call Call[int]) (int, error) {
			must(t, os.Chtimes(call.Lock.File, time.Now(), time.Now()))
			for range 48 {
				time.Sleep(time.Hour)
				info, err := os.Stat(call.Lock.File)
				must(t, err)
				if age := time.Since(info.ModTime()); age > markEvery+checkEvery {
					t.Fatalf("the file looks as if it had not been used for %v", age)
				}
			}
			return 0, nil
		}, WithKey("k"))
		must(t, err)
		files.CloseIdle()
	})
}

func TestLossOfTwoLayersIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		useFiles(t, nil)
		opts, _ := everything(t)
		_, err := WithLock(t.Context(), "in", func(ctx context.Context, call Call[string]) (int, error) {
			must(t, os.RemoveAll(filepath.Dir(call.Lock.File)))
			<-ctx.Done()
			return 0, context.Cause(ctx)
		}, opts...)
		var lost *LostError
		if !errors.As(err, &lost) || lost.Layer != LayerFlock || strings.Count(err.Error(), "lock lost") != 1 {
			t.Errorf("err = %v", err)
		}
	})
}

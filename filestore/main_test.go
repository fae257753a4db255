package filestore_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
	"github.com/lockfx/lockfx/internal/storemodel"
)

// TestMain runs the tests, or plays the part that a test gave to this process.
func TestMain(m *testing.M) {
	if part := os.Getenv(partVariable); part != "" {
		os.Exit(play(part))
	}
	goleak.VerifyTestMain(m)
}

// ctx is for calls that are not about contexts.
var ctx = context.Background()

// newDir returns the path of a fresh directory, in memory where there is such a place:
// thousands of synchronizations take long on a disk.
func newDir(t testing.TB) string {
	t.Helper()
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); err != nil || !info.IsDir() {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "filestore")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func open(t testing.TB, dir string, opts ...filestore.Option) *filestore.Store {
	t.Helper()
	s, err := filestore.New(dir, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// newStore returns a store over a fresh directory, and its clock.
func newStore(t testing.TB) (s *filestore.Store, c *storemodel.Clock, dir string) {
	t.Helper()
	c, dir = new(storemodel.Clock), newDir(t)
	return open(t, dir, filestore.WithNow(c.Now)), c, dir
}

// grant acquires key, which must be free.
func grant(t testing.TB, s lockfx.Store, key string, ttl time.Duration) lockfx.Token {
	t.Helper()
	g, err := s.Acquire(context.Background(), key, ttl)
	if err != nil || !g.OK || !g.Token.Valid() || g.HeldBy != "" || g.RetryAfter != 0 {
		t.Fatalf("Acquire(%q) = %+v, %v; want a plain grant", key, g, err)
	}
	return g.Token
}

// refuse acquires key, which must be held for as long as left.
func refuse(t testing.TB, s lockfx.Store, key string, left time.Duration) {
	t.Helper()
	g, err := s.Acquire(context.Background(), key, time.Minute)
	if err != nil || g.OK || g.Token != 0 || g.RetryAfter != left {
		t.Fatalf("Acquire(%q) = %+v, %v; want a refusal for %v", key, g, err, left)
	}
}

func renew(t testing.TB, s lockfx.Store, key string, token lockfx.Token, ttl time.Duration, want bool) {
	t.Helper()
	if ok, err := s.Renew(context.Background(), key, token, ttl); err != nil || ok != want {
		t.Fatalf("Renew(%q, %v, %v) = %v, %v; want %v", key, token, ttl, ok, err, want)
	}
}

func release(t testing.TB, s lockfx.Store, key string, token lockfx.Token, want bool) {
	t.Helper()
	if ok, err := s.Release(context.Background(), key, token); err != nil || ok != want {
		t.Fatalf("Release(%q, %v) = %v, %v; want %v", key, token, ok, err, want)
	}
}

func forceFree(t testing.TB, s lockfx.Breaker, key string, want bool) {
	t.Helper()
	if ok, err := s.Break(context.Background(), key); err != nil || ok != want {
		t.Fatalf("Break(%q) = %v, %v; want %v", key, ok, err, want)
	}
}

func inspect(t testing.TB, s lockfx.Inspector, key string, want lockfx.Lease) {
	t.Helper()
	if l, err := s.Inspect(context.Background(), key); err != nil || l != want {
		t.Fatalf("Inspect(%q) = %+v, %v; want %+v", key, l, err, want)
	}
}

// rising fails the test unless each token is greater than the one before.
func rising(t testing.TB, tokens ...lockfx.Token) {
	t.Helper()
	for i := 1; i < len(tokens); i++ {
		if tokens[i] <= tokens[i-1] {
			t.Fatalf("tokens do not rise: %v", tokens)
		}
	}
}

// calls are all methods, for a key that may be held with token. Each fails the test if
// it answers yes together with an error.
func calls(s *filestore.Store, token lockfx.Token) map[string]func(context.Context, string) error {
	return map[string]func(context.Context, string) error{
		"acquire": func(ctx context.Context, key string) error {
			_, err := s.Acquire(ctx, key, time.Minute)
			return err
		},
		"renew": func(ctx context.Context, key string) error {
			_, err := s.Renew(ctx, key, token, time.Minute)
			return err
		},
		"release": func(ctx context.Context, key string) error {
			_, err := s.Release(ctx, key, token)
			return err
		},
		"inspect": func(ctx context.Context, key string) error { _, err := s.Inspect(ctx, key); return err },
		"break":   func(ctx context.Context, key string) error { _, err := s.Break(ctx, key); return err },
		"watch": func(ctx context.Context, key string) error {
			_, stop, err := s.Watch(ctx, key)
			if err == nil {
				stop()
			}
			return err
		},
	}
}

func readFile(t testing.TB, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func writeFile(t testing.TB, dir, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func removeFile(t testing.TB, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

// filesIn returns the names of the files in dir that match pattern.
func filesIn(t testing.TB, dir, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/redisserver"
	"github.com/lockfx/lockfx/redisstore"
)

// documented returns the lines of redisstore's README that begin with words.
func documented(words string) ([]string, error) {
	text, err := os.ReadFile("../../redisstore/README.md")
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, words) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	if found == nil {
		return nil, fmt.Errorf("the README has no line that begins with %q", words)
	}
	return found, nil
}

// permissions are the rules of the user that the README shows, for keys of this engine.
func (e *engine) permissions() ([]string, error) {
	lines, err := documented("ACL SETUSER locker on >secret ")
	if err != nil {
		return nil, err
	}
	rules := strings.Fields(strings.ReplaceAll(lines[0], "lockfx:", e.prefix))[5:]
	if e.cluster {
		const add = "For a `redis.ClusterClient` add `"
		if lines, err = documented(add); err != nil {
			return nil, err
		}
		more, _, _ := strings.Cut(strings.TrimPrefix(lines[0], add), "`")
		rules = append(rules, strings.Fields(more)...)
	}
	return rules, nil
}

// permit makes the engine's user, if it has one, on a server.
func (e *engine) permit(s *redisserver.Server) error {
	rules, err := e.permissions()
	if err != nil || e.user == "" {
		return err
	}
	return setUser(s, e.user, rules)
}

func setUser(s *redisserver.Server, user string, rules []string) error {
	args := []any{"acl", "setuser", user, "reset", "on", ">" + password}
	for _, rule := range rules {
		args = append(args, rule)
	}
	admin := s.Client()
	return errors.Join(admin.Do(context.Background(), args...).Err(), admin.Close())
}

// The kit passes for the user that the README shows: see kit. Here, each permission that
// the user is given is needed.
func TestEachDocumentedPermissionIsNeeded(t *testing.T) {
	rules, err := (&engine{prefix: "p:"}).permissions()
	if err != nil {
		t.Fatal(err)
	}
	needed := slices.DeleteFunc(slices.Clone(rules), func(rule string) bool { return !strings.ContainsAny(rule[:1], "+~&") })
	if len(needed) < 10 {
		t.Fatalf("permissions: %q", rules)
	}
	for _, without := range append(needed, "") {
		t.Run("without "+without, func(t *testing.T) {
			t.Parallel()
			server := single(t)
			rest := slices.DeleteFunc(slices.Clone(rules), func(rule string) bool { return rule == without })
			if err := setUser(server, "locker", rest); err != nil {
				t.Fatal(err)
			}
			client := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "locker", Password: password})
			defer client.Close() //nolint:errcheck // a test
			s, err := redisstore.New(client, redisstore.WithPrefix("p:"))
			if err != nil {
				t.Fatal(err)
			}
			err = usesEverything(t.Context(), s)
			if (err == nil) != (without == "") {
				t.Errorf("all operations, without %q: %v", without, err)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// usesEverything calls each operation of a store, and returns what one of them did not do.
func usesEverything(ctx context.Context, s *redisstore.Store) error {
	freed, stop, err := s.Watch(ctx, key)
	if err != nil {
		return err
	}
	defer stop()
	_, stopOther, err := s.Watch(ctx, "other")
	if err != nil {
		return err
	}
	stopOther()
	for _, end := range []func(lockfx.Token) (bool, error){
		func(token lockfx.Token) (bool, error) { return s.Release(ctx, key, token) },
		func(lockfx.Token) (bool, error) { return s.Break(ctx, key) },
	} {
		g, err := s.Acquire(ctx, key, time.Hour)
		if err != nil || !g.OK {
			return fmt.Errorf("acquire: %+v, %w", g, err)
		}
		if again, err := s.Acquire(ctx, key, time.Hour); err != nil || again.OK {
			return fmt.Errorf("acquire again: %+v, %w", again, err)
		}
		if ok, err := s.Renew(ctx, key, g.Token, time.Minute); err != nil || !ok {
			return fmt.Errorf("renew: %v, %w", ok, err)
		}
		for len(freed) > 0 {
			<-freed
		}
		if ok, err := end(g.Token); err != nil || !ok {
			return fmt.Errorf("end: %v, %w", ok, err)
		}
		if ok, err := s.Release(ctx, key, g.Token); err != nil || ok {
			return fmt.Errorf("release what is free: %v, %w", ok, err)
		}
		select {
		case <-freed:
		case <-time.After(3 * time.Second):
			return errors.New("no signal of the end")
		}
	}
	known := time.After(3500 * time.Millisecond) // it takes that long to find out whether the connection lives
	for {
		select {
		case _, alive := <-freed: // a signal may be late
			if !alive {
				return errors.New("the watch is lost")
			}
		case <-known:
			return nil
		}
	}
}

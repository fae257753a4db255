package etcd_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdctl/v3/ctlv3"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/etcdstore"
	"github.com/lockfx/lockfx/fxlock"
	"github.com/lockfx/lockfx/integration/etcdserver"
)

// ctlVariable makes this program etcdctl.
const ctlVariable = "LOCKFX_ETCDCTL"

func etcdctl() {
	if os.Getenv(ctlVariable) != "" {
		ctlv3.MustStart()
		os.Exit(0)
	}
}

// readme returns the blocks of the README in a language.
func readme(t *testing.T, language string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile("../../etcdstore/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(text, -1) {
		blocks = append(blocks, string(block[1]))
	}
	return blocks
}

// The blocks of Go in the README are lines of this test.
func TestTheReadmesApplicationHoldsItsLock(t *testing.T) {
	t.Parallel()
	endpoints := start(t, 3, etcdserver.Quick).Addrs()
	var lock *fxlock.Lock
	app := fxtest.New(t,
		fx.Provide(func(lc fx.Lifecycle) (*clientv3.Client, error) {
			client, err := clientv3.New(clientv3.Config{
				Endpoints:            endpoints, // of all members
				DialKeepAliveTime:    10 * time.Second,
				DialKeepAliveTimeout: 3 * time.Second,
			})
			if err == nil {
				lc.Append(fx.StopHook(client.Close))
			}
			return client, err
		}),
		fxlock.Module("nightly",
			fxlock.WithTTL(30*time.Second),
			fxlock.StoreFrom(etcdstore.From), // takes the *clientv3.Client of the application
		),
		fx.Populate(&lock),
	)
	app.RequireStart()
	err := lock.Do(t.Context(), func(_ context.Context, h lockfx.Holder) error {
		if !h.Held() {
			t.Error("not held")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	app.RequireStop()

	self, err := os.ReadFile("readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	bare := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	for _, block := range readme(t, "go") {
		if !strings.Contains(bare(string(self)), bare(block)) {
			t.Errorf("no test runs\n%s", block)
		}
	}
}

// command runs a command line in which etcdctl asks the cluster of e.
func (e *engine) command(t *testing.T, line string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	script := "#!/bin/sh\nexec env " + ctlVariable + "=1 '" + self + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "etcdctl"), []byte(script), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "ETCDCTL_ENDPOINTS="+strings.Join(e.cluster.Addrs(), ","))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The commands of the README show what it says they show.
func TestTheReadmesCommandsShowTheLocks(t *testing.T) {
	e := one(t)
	e.prefix = "lockfx/"
	s := e.store(t)
	g, err := s.Acquire(lockfx.WithLabel(t.Context(), "host/4711/app"), key, time.Hour)
	if err != nil || !g.OK {
		t.Fatal(g, err)
	}
	release(t, s, "weekly", granted(t, s, "weekly", time.Hour), true)
	all := leases(t, e.raw(t))
	if len(all) != 2 {
		t.Fatalf("leases %v", all)
	}
	var lease string
	shows := func(out string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("no %q in\n%s", w, out)
			}
		}
	}
	check := map[string]func(out string){
		"get --prefix lockfx/": func(out string) { shows(out, "lockfx/nightly\nhost/4711/app\n") },
		"get lockfx/nightly -w fields": func(out string) {
			shows(out, `"CreateRevision" : `+g.Token.String(), `"Lease" : `)
			lease = regexp.MustCompile(`"Lease" : (\d+)`).FindStringSubmatch(out)[1]
		},
		"lease timetolive $(printf %x LEASE)": func(out string) { shows(out, "granted with TTL(3600s), remaining(3") },
		"watch --prefix lockfx/":              func(out string) { shows(out, "PUT\nlockfx/monthly\n", "DELETE\nlockfx/monthly\n") },
		"lease list": func(out string) {
			shows(out, "found 2 leases", strconv.FormatInt(int64(all[0].ID), 16), strconv.FormatInt(int64(all[1].ID), 16))
		},
		"del lockfx/nightly": func(out string) {
			shows(out, "1\n")
			renew(t, s, key, g.Token, time.Hour, false)
		},
		"endpoint status -w table": func(out string) { shows(out, "IS LEADER", e.cluster.Addrs()[0], "true") },
	}
	var busy sync.WaitGroup
	var done atomic.Bool
	for line := range strings.Lines(readme(t, "text")[0]) {
		line, _, _ := strings.Cut(strings.TrimSpace(line), "  ")
		show := check[strings.TrimPrefix(line, "etcdctl ")]
		if show == nil {
			t.Errorf("nothing is known of what %q shows", line)
			continue
		}
		delete(check, strings.TrimPrefix(line, "etcdctl "))
		run := strings.ReplaceAll(line, "LEASE", lease)
		if strings.HasPrefix(line, "etcdctl watch") { // until two events were shown
			run = "timeout 3 " + run + "; true"
			done.Store(false)
			busy.Go(func() {
				for !done.Load() {
					if g, err := s.Acquire(t.Context(), "monthly", time.Hour); err == nil && g.OK {
						_, _ = s.Release(t.Context(), "monthly", g.Token)
					}
				}
			})
		}
		out, err := e.command(t, run)
		done.Store(true)
		busy.Wait()
		if err != nil {
			t.Errorf("%s: %v\n%s", run, err, out)
		}
		show(out)
	}
	if len(check) > 0 {
		t.Errorf("not in the README: %v", check)
	}
}

// A new leader gives each lease its whole time again.
func TestAnElectionAddsATTLToAnAbandonedKey(t *testing.T) {
	t.Parallel()
	cluster := start(t, 3, etcdserver.Ordinary)
	e := on(t, cluster)
	const ttl = 5 * time.Second
	granted(t, e.store(t), key, ttl)
	lead := leader(t, cluster)
	time.Sleep(ttl / 2)
	killed := time.Now()
	lead.Process().Kill()
	freed(t, e.store(t), key, time.Minute)
	if took := time.Since(killed); took < ttl {
		t.Errorf("freed %v after the loss of the leader, want a ttl of %v and more", took, ttl)
	}
	if err := lead.Restart(t.Context()); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

package fxlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// Two modules lead independently; a Named one is there by its name alone.
func TestLead_InTwoModules(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := fxlock.NewMemoryStore()
		var p struct {
			fx.In
			Unnamed *fxlock.Leadership
			A       *fxlock.Leadership `name:"a"`
			B       *fxlock.Leadership `name:"b"`
		}
		started(t, fx.Populate(&p),
			fxlock.Module("a", fxlock.WithStore(store), fxlock.Lead(untilToldTo)),
			fxlock.Module("b", fxlock.WithStore(store), fxlock.Lead(untilToldTo), fxlock.Named()))
		synctest.Wait()
		if p.Unnamed != p.A || p.A == p.B || !p.A.IsLeader() || !p.B.IsLeader() || p.A.Token() == p.B.Token() {
			t.Errorf("leads %v with %v, and %v with %v", p.A.IsLeader(), p.A.Token(), p.B.IsLeader(), p.B.Token())
		}
	})
}

// A private module leads too, and keeps its Leadership to itself.
func TestLead_InAPrivateModule(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var inside *fxlock.Leadership
		feature := fx.Module("feature",
			fxlock.Module(key, memory(), fxlock.Private(), fxlock.Lead(untilToldTo)),
			fx.Invoke(func(l *fxlock.Leadership) { inside = l }))
		started(t, feature)
		synctest.Wait()
		if !inside.IsLeader() {
			t.Error("it does not lead")
		}
		wantText(t, newErr(feature, fx.Invoke(func(*fxlock.Leadership) {})), "missing type: *fxlock.Leadership")
	})
}

// Nobody takes the Leadership, and yet the application leads.
func TestLead_RunsWithoutAConsumer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newSpyStore(new(journal))
		started(t, fxlock.Module(key, fxlock.WithStore(store), fxlock.Lead(untilToldTo)))
		synctest.Wait()
		if store.free() {
			t.Error("nobody leads")
		}
	})
}

func TestLead_RejectsMistakes(t *testing.T) {
	for name, tt := range map[string]struct {
		opts []fxlock.Option
		want []string
	}{
		"no function":     {options(fxlock.Lead(nil)), []string{"fxlock.Lead(<nil>)", "must have a function to run"}},
		"annotated":       {options(fxlock.Lead(fx.Annotate(func(string) {}, fx.ParamTags(`name:"a"`)))), []string{"an fx.In struct tags parameters"}},
		"a number":        {options(fxlock.Lead(3)), []string{"fxlock.Lead(int)", "must have a function to run"}},
		"results":         {options(fxlock.Lead(func() int { return 1 })), []string{"func() int must return nothing or an error"}},
		"a pause of none": {options(fxlock.Lead(func() {}, fxlock.TermPause(0))), []string{"fxlock.TermPause(0s): must be greater than 0"}},
		"a nil option":    {options(fxlock.Lead(func() {}, nil)), []string{"lead option 1 is nil"}},
		"all at once":     {options(fxlock.Lead(nil, nil, fxlock.TermPause(-1))), []string{"TermPause(-1ns)", "option 1 is nil", "a function to run"}},
		"two of them": {
			options(fxlock.Lead(func() {}), fxlock.Lead(func() {}, fxlock.OneTerm())),
			[]string{"fxlock.OneTerm()): a module can have one Lead"},
		},
		"in vain": {
			options(fxlock.Lead(func(*DB) {})),
			[]string{"lock nightly, fxlock.Lead; if a type is missing: fx.Provide it", "missing type: *fxlock_test.DB", "lead_graph_test.go:"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := newErr(fxlock.Module(key, append(tt.opts, memory())...))
			wantText(t, err, tt.want...)
			if name != "in vain" {
				wantIs(t, err, lockfx.ErrConfig)
			}
		})
	}
	_, err := fxlock.New(fxlock.WithKey(key), fxlock.WithTTL(ttl), fxlock.Lead(func() {}))
	wantText(t, err, "needs an fx application: use fxlock.Module")
	wantText(t, fxlock.Validate(fxlock.Module(key, memory(), fxlock.Lead(func(*DB) {}))), "missing type: *fxlock_test.DB")
}

func TestLeader_AsksTheStore(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newFarStore()
		c := newCandidate(store, untilToldTo, fxlock.WithLabel("web-1"))
		if lease, err := c.Leader(t.Context()); lease != (lockfx.Lease{}) || err != nil {
			t.Errorf("before the start: %+v, %v", lease, err)
		}
		c.start(t)
		if lease, err := c.Leader(t.Context()); lease.Label != "web-1" || lease.TimeLeft != ttl || err != nil {
			t.Errorf("while it leads: %+v, %v", lease, err)
		}
		store.away.Store(true)
		_, err := c.Leader(t.Context())
		wantIs(t, err, lockfx.ErrStore, errAway)
		wantText(t, err, `leader of "nightly": `)
		store.away.Store(false)

		_, err = newCandidate(struct{ lockfx.Store }{store}, untilToldTo).Leader(t.Context())
		wantIs(t, err, errors.ErrUnsupported)
		wantText(t, err, "is no lockfx.Inspector")
	})
}

func TestLead_PrintsItself(t *testing.T) {
	for want, got := range map[string]fmt.Stringer{
		"fxlock.Lead(fxlock_test.untilToldTo, fxlock.TermPause(3s), fxlock.OneTerm())": fxlock.Lead(untilToldTo, fxlock.TermPause(3e9), fxlock.OneTerm()),
		"fxlock.OnStart[fxlock_test.Migrated](fxlock_test.untilToldTo)":                fxlock.OnStart[Migrated](untilToldTo),
		"standing by":         fxlock.LeadershipStandingBy,
		"leader changed":      fxlock.LeadershipMoved,
		"lost":                fxlock.LeadershipLost,
		"elected":             fxlock.LeadershipElected,
		"term ended":          fxlock.LeadershipEnded,
		"stood down":          fxlock.LeadershipStoodDown,
		"LeadershipChange(9)": fxlock.LeadershipChange(9),
	} {
		if got.String() != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A panic of fn ends the process, as that of any goroutine. The lock is released
// before.
func TestLead_PanicReleasesFirst(t *testing.T) {
	const child = "LOCKFX_TEST_PANIC"
	if os.Getenv(child) != "" {
		c := newCandidate(fxlock.NewMemoryStore(), func() { panic("lead-fault") }, fxlock.Observer(func(e lockfx.Event) { fmt.Println("saw", e.Kind) }))
		must(t, c.app.Start(context.Background()))
		select {}
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), child+"=1")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var lines []string
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "saw") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	want := []string{"saw acquired", "saw released"}
	if err == nil || !slices.Equal(lines, want) || !strings.Contains(stderr.String(), "panic: lead-fault") {
		t.Errorf("%v, %q\n%s", err, lines, stderr.String())
	}
}

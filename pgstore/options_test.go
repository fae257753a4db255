package pgstore

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lockfx/lockfx"
)

func TestOptionsPrintThemselvesAsWritten(t *testing.T) {
	for want, opt := range map[string]Option{
		`pgstore.WithSchema("app")`:     WithSchema("app"),
		`pgstore.WithTable("my \"t\"")`: WithTable(`my "t"`),
		`pgstore.WithMemory(1h0m0s)`:    WithMemory(time.Hour),
		`pgstore.WithAsyncCommit()`:     WithAsyncCommit(),
		`pgstore.WithConnections(2)`:    WithConnections(2),
	} {
		if got := opt.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestAllFaultsOfTheOptionsAreReportedAtOnce(t *testing.T) {
	opts := []Option{
		WithSchema(""), WithSchema(strings.Repeat("s", 64)), WithTable(strings.Repeat("t", 54)), WithTable("a\x00b"),
		WithMemory(59 * time.Second), WithMemory(11 * 365 * 24 * time.Hour), nil, WithAsyncCommit(), WithTable("fine"),
		WithConnections(0), WithConnections(1001),
	}
	_, err := SchemaSQL(opts...)
	if !errors.Is(err, lockfx.ErrConfig) {
		t.Fatalf("%v; want an error that matches lockfx.ErrConfig", err)
	}
	for _, fault := range []string{
		`pgstore.WithSchema(""): must not be empty`,
		`has 64 bytes; at most 63 are allowed`,
		`has 54 bytes; at most 53 are allowed`,
		`pgstore.WithTable("a\x00b"): must be UTF-8 without NUL`,
		`pgstore.WithMemory(59s): must be from 1m0s to 87600h0m0s`,
		`pgstore.WithMemory(96360h0m0s): must be from`,
		`option 7 is nil`,
		`pgstore.WithConnections(0): must be from 1 to 1000`,
		`pgstore.WithConnections(1001): must be from`,
	} {
		if !strings.Contains(err.Error(), fault) {
			t.Errorf("%q says nothing of %q", err, fault)
		}
	}
	if _, again := New(nil, opts...); again == nil || again.Error() != err.Error()+"; the pool must not be nil" {
		t.Errorf("New: %v, want %v and the pool", again, err)
	}
	if again := Migrate(t.Context(), nil, opts...); again == nil || again.Error() != err.Error() {
		t.Errorf("Migrate: %v, want %v", again, err)
	}
}

func TestANilPoolIsRefused(t *testing.T) {
	for name, open := range map[string]func(*pgxpool.Pool) (*Store, error){
		"From": From, "New": func(p *pgxpool.Pool) (*Store, error) { return New(p) },
	} {
		if s, err := open(nil); s != nil || !errors.Is(err, lockfx.ErrConfig) {
			t.Errorf("%s: %v, %v; want an error that matches lockfx.ErrConfig", name, s, err)
		}
	}
}

func TestNamesAreQuoted(t *testing.T) {
	for want, opts := range map[string][]Option{
		`"public"."lockfx_leases"`:         nil,
		`"app"."lockfx_leases"`:            {WithSchema("app")},
		`"Robert""; DROP"."a.b"`:           {WithSchema(`Robert"; DROP`), WithTable("a.b")},
		`"public"."ünïcode and a { brace"`: {WithTable("ünïcode and a { brace")},
	} {
		set, err := settle(opts)
		if err != nil {
			t.Fatal(err)
		}
		if got := set.leases(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		all := set.statements()
		for _, stmt := range []statement{all.acquire, all.renew, all.release, all.released, all.forced, all.inspect, all.undo, all.sweep, all.watch} {
			if !strings.Contains(stmt.sql, want) || strings.Contains(stmt.sql, "{leases}") {
				t.Errorf("no %s in %s", want, stmt.sql)
			}
		}
	}
}

// A channel has at most 63 bytes, and different tables have different ones.
func TestChannels(t *testing.T) {
	long := strings.Repeat("x", 53)
	seen := map[string]names{}
	for _, n := range []names{
		{"public", "lockfx_leases"},
		{"app", "lockfx_leases"},
		{"public", long},
		{"app", long},
		{strings.Repeat("x", 63), long},
		{"public", strings.Repeat("x", 52) + "y"},
	} {
		c := n.channel()
		if other, taken := seen[c]; taken || len(c) > maxName || !strings.HasPrefix(c, "lockfx:") {
			t.Errorf("%+v has the channel %q, and so has %+v", n, c, other)
		}
		seen[c] = n
	}
	if got := (names{"public", "lockfx_leases"}).channel(); got != "lockfx:public.lockfx_leases" {
		t.Errorf("%q, want a channel that can be read", got)
	}
}

func TestSchemaSQLMakesTheSchemaThatIsNamed(t *testing.T) {
	sql, err := SchemaSQL(WithSchema("app"), WithTable("locks"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`CREATE SCHEMA IF NOT EXISTS "app";`, `CREATE TABLE IF NOT EXISTS "app"."locks"`, `"locks_forget_at" ON "app"."locks"`} {
		if !strings.Contains(sql, want) {
			t.Errorf("no %s in %s", want, sql)
		}
	}
	if sql, _ = SchemaSQL(); strings.Contains(sql, "CREATE SCHEMA") {
		t.Errorf("a schema that nobody named: %s", sql)
	}
}

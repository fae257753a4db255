package pgstore

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed sql/*.sql
var files embed.FS

// statement is a file of the folder sql, with the names of the schema put in.
type statement struct {
	sql  string
	name string // under which a connection prepares it
	// repeatable says that sending it twice is the same as sending it once.
	repeatable bool
	// notifies says that its last argument is the channel on which it may notify.
	notifies bool
	// keeps says that it keeps or ends a lease: it goes through even if the pool has no
	// connection to give.
	keeps bool
	// async says that the server may forget it in a crash: then it answers before the
	// commit is on its disk. What such a statement does is never what a lease rests on.
	async bool
}

type statements struct {
	acquire, renew, release, released, forced, inspect, undo, sweep, watch statement
}

func (n names) statements() statements {
	return statements{
		acquire: n.statement("acquire", statement{}),
		renew:   n.statement("renew", statement{repeatable: true, notifies: true, keeps: true}),
		// A release that is forgotten is a lease that runs out. What is granted later is
		// on the disk later, so no grant outlives the release before it; and the token
		// was on the disk when it was granted.
		release:  n.statement("release", statement{repeatable: true, notifies: true, keeps: true, async: true}),
		released: n.statement("released", statement{repeatable: true, keeps: true}),
		forced:   n.statement("break", statement{repeatable: true, notifies: true, keeps: true}),
		inspect:  n.statement("inspect", statement{repeatable: true}),
		undo:     n.statement("undo", statement{repeatable: true, notifies: true, keeps: true}),
		sweep:    n.statement("sweep", statement{}),
		// Whoever watches hears of a crash, and watches again.
		watch: n.statement("watch", statement{repeatable: true, async: true}),
	}
}

func (n names) statement(file string, s statement) statement {
	s.sql = withoutComments(n.read(file))
	sum := sha256.Sum256([]byte(s.sql))
	s.name = "lockfx " + file + " " + hex.EncodeToString(sum[:8])
	return s
}

func (n names) read(file string) string {
	text, err := files.ReadFile("sql/" + file + ".sql")
	if err != nil {
		panic(err) // the files are part of the package
	}
	return n.fill(string(text))
}

func (n names) fill(sql string) string {
	return strings.NewReplacer("{leases}", n.leases(), "{index}", pgx.Identifier{n.table + "_forget_at"}.Sanitize()).Replace(sql)
}

// withoutComments removes the lines that are comments: an argument that is put into one
// could end it.
func withoutComments(sql string) string {
	var kept []string
	for line := range strings.Lines(sql) {
		if !strings.HasPrefix(strings.TrimSpace(line), "--") {
			kept = append(kept, line)
		}
	}
	return strings.TrimSpace(strings.Join(kept, ""))
}

// prepared returns SQL that executes the statement on a connection that knows it.
func (s statement) prepared(args []any) string {
	values := make([]string, len(args))
	for i, arg := range args {
		values[i] = literal(arg)
	}
	return "execute " + pgx.Identifier{s.name}.Sanitize() + "(" + strings.Join(values, ", ") + ")"
}

// inline returns the SQL of the statement with its arguments.
func (s statement) inline(args []any) string {
	var pairs []string
	for i, arg := range args {
		pairs = append(pairs, "$"+strconv.Itoa(i+1), literal(arg))
	}
	return strings.NewReplacer(pairs...).Replace(s.sql)
}

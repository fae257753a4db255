package pgstore

import (
	"embed"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed sql/*.sql
var files embed.FS

// statement is a file of the folder sql, with the names of the schema put in.
type statement struct {
	sql string
	// repeatable says that sending it twice is the same as sending it once, so it is
	// sent again when the connection breaks under it.
	repeatable bool
}

type statements struct {
	acquire, renew, release, forced, inspect, undo, sweep statement
}

func (n names) statements() statements {
	return statements{
		acquire: statement{sql: n.read("acquire")},
		renew:   statement{n.read("renew"), true},
		inspect: statement{n.read("inspect"), true},
		undo:    statement{n.read("undo"), true},
		release: statement{sql: n.read("release")},
		forced:  statement{sql: n.read("break")},
		sweep:   statement{sql: n.read("sweep")},
	}
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

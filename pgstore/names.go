package pgstore

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// maxName is the length of the longest name that the server does not cut off.
const maxName = 63

// maxTable leaves room for the name of the index.
const maxTable = maxName - len("_forget_at")

// names are what the schema of a store is called.
type names struct {
	schema, table string
}

// leases returns the quoted name of the table.
func (n names) leases() string {
	return pgx.Identifier{n.schema, n.table}.Sanitize()
}

// channel returns the channel that gets the keys that are freed.
func (n names) channel() string {
	const prefix = "lockfx:"
	name := n.schema + "." + n.table
	if len(prefix+name) <= maxName {
		return prefix + name
	}
	sum := sha256.Sum256([]byte(name))
	return prefix + hex.EncodeToString(sum[:16])
}

// checkName returns the rule that name breaks, or nil.
func checkName(name string, most int) error {
	switch {
	case name == "":
		return errors.New("must not be empty")
	case len(name) > most:
		return fmt.Errorf("has %d bytes; at most %d are allowed", len(name), most)
	case !utf8.ValidString(name) || strings.IndexByte(name, 0) >= 0:
		return errors.New("must be UTF-8 without NUL")
	}
	return nil
}

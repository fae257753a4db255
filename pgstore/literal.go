package pgstore

import (
	"fmt"
	"strconv"
	"strings"
)

// literal returns a value as it stands in SQL: in ASCII and on one line, so that it
// depends neither on the encoding of the connection nor on how its server reads a
// backslash in an ordinary string.
func literal(v any) string {
	switch v := v.(type) {
	case string:
		return text(v)
	case int64:
		return "'" + strconv.FormatInt(v, 10) + "'"
	case []string:
		all := make([]string, len(v))
		for i, s := range v {
			all[i] = `"` + element.Replace(s) + `"`
		}
		return text("{" + strings.Join(all, ",") + "}")
	case []int64:
		all := make([]string, len(v))
		for i, n := range v {
			all[i] = strconv.FormatInt(n, 10)
		}
		return "'{" + strings.Join(all, ",") + "}'"
	}
	panic(fmt.Sprintf("pgstore: no literal for %T", v)) // the statements have no such argument
}

// element escapes a string within an array.
var element = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

func text(s string) string {
	var b strings.Builder
	b.WriteString("E'")
	for _, r := range s {
		switch {
		case r == '\'' || r == '\\':
			b.WriteRune(r)
			b.WriteRune(r)
		case ' ' <= r && r <= '~':
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

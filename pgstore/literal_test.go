package pgstore

import (
	"strings"
	"testing"
)

func TestLiteral_IsASCIIOnOneLine(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{"plain", `E'plain'`},
		{"'; DROP TABLE x; --", `E'''; DROP TABLE x; --'`},
		{`back\slash\'`, `E'back\\slash\\'''`},
		{"two\nlines\x7f", `E'two\u000alines\u007f'`},
		{"ünïcode €", `E'\u00fcn\u00efcode \u20ac'`},
		{"🔒", `E'\U0001f512'`},
		{"$1", `E'$1'`},
		{int64(-1 << 63), `'-9223372036854775808'`},
		{[]string{"a", "b'c", `"{\,`, "NULL"}, `E'{"a","b''c","\\"{\\\\,","NULL"}'`},
		{[]int64{1, -2}, `'{1,-2}'`},
	} {
		if got := literal(c.v); got != c.want {
			t.Errorf("%#v: %s, want %s", c.v, got, c.want)
		}
	}
}

// An argument that looks like a placeholder stays as it is, and comments, which an
// argument could end, are not sent.
func TestInline_PutsArgumentsInOnce(t *testing.T) {
	all := names{"public", "lockfx_leases"}.statements()
	sql := all.release.inline([]any{"$2 $3", int64(7), "$1"})
	if strings.Contains(sql, "--") || strings.Count(sql, "E'$2 $3'") != 1 || strings.Count(sql, "'7'") != 1 || strings.Count(sql, "E'$1'") != 2 {
		t.Error(sql)
	}
}

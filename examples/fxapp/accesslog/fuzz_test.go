package accesslog_test

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/lockfx/lockfx/examples/fxapp/accesslog"
)

// What Parse accepts, written again the careful way, gives the same entry.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		good,
		line("GET /a HTTP/1.1", "200 5"),
		line(`\x16\x03\x01`, `400 - "-" "-"`),
		line(`GET /\"a\\\" HTTP/1.1`, `404 0 "\x2d" "C:\dir" 1 2`),
		line("-", `408 - "" "\t\n\xzz\"`),
		`2001:db8::1 id Ada Lovelace [29/Feb/2024:23:59:60 -0730] "" 000 0`,
		`h - "" [14/Mar/2026:09:26:53 +0000] "GET HTTP/1.1" 999 9223372036854775807`,
		"",
		"- - - [] \"\" - -",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := accesslog.Parse(text)
		if err != nil {
			if e != (accesslog.Entry{}) {
				t.Fatalf("an entry beside the error %v: %+v", err, e)
			}
			return
		}
		if e.Host == "" || e.Bytes < 0 || e.Status < 0 || e.Status > 999 {
			t.Fatalf("impossible entry %+v", e)
		}
		if (e.Method == "") != (e.Path == "") || e.Proto != "" && e.Path == "" {
			t.Fatalf("half a request line in %+v", e)
		}
		again, err := accesslog.Parse(write(e))
		if err != nil {
			t.Fatalf("parse %q again: %v", write(e), err)
		}
		if !again.Time.Equal(e.Time) {
			t.Fatalf("time %v became %v", e.Time, again.Time)
		}
		again.Time = e.Time
		if again != e {
			t.Fatalf("got  %+v\nwant %+v\nfrom %q", again, e, write(e))
		}
	})
}

// Read neither loses nor invents a byte or a line, wherever the ends fall.
func FuzzRead(f *testing.F) {
	f.Add([]byte(good+"\n\r\nx\n"+good), uint16(40))
	f.Add([]byte(good+"\r\n"+good+" \r\n"), uint16(len(good)))
	f.Add([]byte("\n\n\r"), uint16(1))
	f.Fuzz(func(t *testing.T, log []byte, maxLine uint16) {
		limit := max(1, int(maxLine)) // 0 would stand for the default
		entries, malformed := 0, 0
		for text := range bytes.Lines(log) {
			text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
			if _, err := accesslog.Parse(string(text)); err == nil && len(text) <= limit {
				entries++
			} else {
				malformed++
			}
		}
		got := 0
		stats, err := accesslog.Read(t.Context(), bytes.NewReader(log), accesslog.Options{MaxLine: limit}, func(accesslog.Entry) error {
			got++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got != entries || stats.Malformed != int64(malformed) || stats.Lines != int64(entries+malformed) || stats.Bytes != int64(len(log)) {
			t.Fatalf("got %d entries and %+v; want %d entries, %d malformed, %d bytes", got, stats, entries, malformed, len(log))
		}
	})
}

// write formats an entry as a server would that escapes all it may.
func write(e accesslog.Entry) string {
	return fmt.Sprintf(`%s %s %s [%s] "%s" %03d %d "%s" "%s"`, e.Host, orDash(e.Ident), escaped(e.User),
		e.Time.Format(accesslog.TimeLayout), escaped(e.Request), e.Status, e.Bytes, escaped(e.Referer), escaped(e.UserAgent))
}

func escaped(s string) string {
	if s == "-" {
		return `\x2d`
	}
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(rune(c)))
		case c < ' ' || c > '~' || c == '[':
			b.WriteString(`\x` + strconv.FormatUint(0x100|uint64(c), 16)[1:])
		default:
			b.WriteByte(c)
		}
	}
	return orDash(b.String())
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

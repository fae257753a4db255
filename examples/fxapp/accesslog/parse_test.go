package accesslog_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lockfx/lockfx/examples/fxapp/accesslog"
)

// line puts fields where a test cares about only some of them.
func line(request, rest string) string {
	return `192.0.2.7 - - [14/Mar/2026:09:26:53 +0000] "` + request + `" ` + rest
}

var at = time.Date(2026, time.March, 14, 9, 26, 53, 0, time.UTC)

func TestParse(t *testing.T) {
	plain := accesslog.Entry{
		Host: "192.0.2.7", Time: at, Request: "GET /a HTTP/1.1",
		Method: "GET", Path: "/a", Proto: "HTTP/1.1", Status: 200, Bytes: 5,
	}
	with := func(change func(*accesslog.Entry)) accesslog.Entry {
		e := plain
		change(&e)
		return e
	}
	tests := []struct {
		name, line string
		want       accesslog.Entry
	}{
		{"common", line("GET /a HTTP/1.1", `200 5`), plain},
		{"combined", line("GET /a HTTP/1.1", `200 5 "https://example.com/" "agent/1"`), with(func(e *accesslog.Entry) {
			e.Referer, e.UserAgent = "https://example.com/", "agent/1"
		})},
		{"combined without values", line("GET /a HTTP/1.1", `200 - "-" "-"`), with(func(e *accesslog.Entry) { e.Bytes = 0 })},
		{"more fields than combined has", line("GET /a HTTP/1.1", `200 5 "-" "agent/1" "198.51.100.1" 0.004`), with(func(e *accesslog.Entry) {
			e.UserAgent = "agent/1"
		})},
		{"IPv6", strings.Replace(line("GET /a HTTP/1.1", `200 5`), "192.0.2.7", "2001:db8::7", 1), with(func(e *accesslog.Entry) {
			e.Host = "2001:db8::7"
		})},
		{"ident and user", strings.Replace(line("GET /a HTTP/1.1", `200 5`), "- -", "id ada", 1), with(func(e *accesslog.Entry) {
			e.Ident, e.User = "id", "ada"
		})},
		{"user with a space", strings.Replace(line("GET /a HTTP/1.1", `200 5`), "- -", "- Ada Lovelace", 1), with(func(e *accesslog.Entry) {
			e.User = "Ada Lovelace"
		})},
		{"user with an escape", strings.Replace(line("GET /a HTTP/1.1", `200 5`), "- -", `- a\"d\x20a`, 1), with(func(e *accesslog.Entry) {
			e.User = `a"d a`
		})},
		{"user present and empty", strings.Replace(line("GET /a HTTP/1.1", `200 5`), "- -", `- ""`, 1), plain},
		{"another zone", strings.Replace(line("GET /a HTTP/1.1", `200 5`), "09:26:53 +0000", "14:56:53 +0530", 1), with(func(e *accesslog.Entry) {
			e.Time = at.In(time.FixedZone("", 5*3600+30*60))
		})},
		{"status of nginx without an answer", line("GET /a HTTP/1.1", `000 0`), with(func(e *accesslog.Entry) { e.Status, e.Bytes = 0, 0 })},
		{"size beyond 32 bits", line("GET /a HTTP/1.1", `200 9223372036854775807`), with(func(e *accesslog.Entry) { e.Bytes = 1<<63 - 1 })},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := accesslog.Parse(test.line)
			if err != nil {
				t.Fatal(err)
			}
			if !got.Time.Equal(test.want.Time) || got.Time.Format(accesslog.TimeLayout) != test.want.Time.Format(accesslog.TimeLayout) {
				t.Errorf("time: got %v, want %v", got.Time, test.want.Time)
			}
			got.Time = test.want.Time
			if got != test.want {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestParseEscapes(t *testing.T) {
	tests := map[string]string{
		`say \"hi\"`:        `say "hi"`,
		`a\\b`:              `a\b`,
		`a\\`:               `a\`,
		`\x22nginx\x5C`:     `"nginx\`,
		`\x16\x03\x01\x02`:  "\x16\x03\x01\x02",
		`\xc3\xa9t\xC3\xA9`: "été",
		`\t\n\r\b\v`:        "\t\n\r\b\v",
		`C:\dir\xzz\x4`:     `C:\dir\xzz\x4`, // no escapes: kept
		`\x2d`:              "-",             // a real dash, not the sign for none
		`-`:                 "",
		``:                  "",
	}
	for written, want := range tests {
		e, err := accesslog.Parse(line(written, `400 0 "`+written+`" "`+written+`"`))
		if err != nil {
			t.Errorf("%s: %v", written, err)
			continue
		}
		if e.Request != want || e.Referer != want || e.UserAgent != want {
			t.Errorf("%s: got request %q, referer %q, agent %q; want %q", written, e.Request, e.Referer, e.UserAgent, want)
		}
	}
}

func TestParseRequestLine(t *testing.T) {
	tests := []struct{ request, method, path, proto string }{
		{"GET / HTTP/1.1", "GET", "/", "HTTP/1.1"},
		{"GET /with some spaces HTTP/1.0", "GET", "/with some spaces", "HTTP/1.0"},
		{"GET /old", "GET", "/old", ""},
		{"OPTIONS * HTTP/1.1", "OPTIONS", "*", "HTTP/1.1"},
		{"CONNECT example.com:443 HTTP/1.1", "CONNECT", "example.com:443", "HTTP/1.1"},
		{"VERSION-CONTROL /x HTTP/1.1", "VERSION-CONTROL", "/x", "HTTP/1.1"},
		{"PRI * HTTP/2.0", "PRI", "*", "HTTP/2.0"},
		{"GET", "", "", ""},
		{"GET ", "", "", ""},
		{"GET HTTP/1.1", "", "", ""},
		{" / HTTP/1.1", "", "", ""},
		{"get / HTTP/1.1", "", "", ""},
		{`\x16\x03\x01 \x00`, "", "", ""},
		{"-", "", "", ""},
		{"", "", "", ""},
	}
	for _, test := range tests {
		e, err := accesslog.Parse(line(test.request, "400 0"))
		if err != nil {
			t.Errorf("%q: %v", test.request, err)
			continue
		}
		if e.Method != test.method || e.Path != test.path || e.Proto != test.proto {
			t.Errorf("%q: got %q %q %q", test.request, e.Method, e.Path, e.Proto)
		}
	}
}

func TestParseMalformed(t *testing.T) {
	tests := []struct{ name, line, reason string }{
		{"empty", "", "line is empty"},
		{"blank", "   ", "host is empty"},
		{"no host", line("GET / HTTP/1.1", "200 5")[len("192.0.2.7"):], "host is empty"},
		{"an error log", "2026/03/14 09:26:53 [error] 7#7: upstream timed out", "no time in brackets"},
		{"time of another kind", "192.0.2.7 - - [2026-03-14T09:26:53Z] x", `time "2026-03-14T09:26:53Z" is not written as`},
		{"no time", "192.0.2.7 - - GET / 200 5", "no time in brackets"},
		{"no user", `192.0.2.7 - [14/Mar/2026:09:26:53 +0000] "GET / HTTP/1.1" 200 5`, "no time in brackets"},
		{"no such day", strings.Replace(line("GET / HTTP/1.1", "200 5"), "14/Mar", "31/Feb", 1), `time "31/Feb/2026:09:26:53 +0000" is not written as`},
		{"no zone", strings.Replace(line("GET / HTTP/1.1", "200 5"), " +0000", "", 1), "is not written as"},
		{"fractional seconds", strings.Replace(line("GET / HTTP/1.1", "200 5"), ":53", ":53.25", 1), "is not written as"},
		{"cut off in the request", strings.TrimSuffix(line("GET /", ""), `" `), `request has no closing quote: "\"GET`},
		{"escaped closing quote", line(`GET /\`, ""), "request has no closing quote"},
		{"quote in the request", line(`GET /"a" HTTP/1.1`, "200 5"), "request is not followed by a space"},
		{"request not quoted", strings.ReplaceAll(line("GET /", "200 5"), `"`, ""), "request is missing or not quoted"},
		{"nothing after the request", line("GET /", ""), `status "" is not three digits`},
		{"status of two digits", line("GET /", "20 5"), `status "20" is not three digits`},
		{"status with a sign", line("GET /", "+20 5"), `status "+20" is not three digits`},
		{"status in letters", line("GET /", "OK 5"), `status "OK" is not three digits`},
		{"no size", line("GET /", "200"), `size "" is neither`},
		{"negative size", line("GET /", "200 -5"), `size "-5" is neither`},
		{"size of 64 bits", line("GET /", "200 9223372036854775808"), `size "9223372036854775808" is neither`},
		{"trailing space", line("GET /", "200 5 "), "referer is missing or not quoted"},
		{"referer alone", line("GET /", `200 5 "-"`), "user agent is missing or not quoted"},
		{"agent cut off", line("GET /", `200 5 "-" "Mozilla`), "user agent has no closing quote"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e, err := accesslog.Parse(test.line)
			if err == nil {
				t.Fatalf("%q parsed as %+v", test.line, e)
			}
			if !strings.Contains(err.Error(), test.reason) {
				t.Errorf("got reason %q, want one with %q", err, test.reason)
			}
			if e != (accesslog.Entry{}) {
				t.Errorf("entry is not zero beside an error: %+v", e)
			}
		})
	}
}

// A hostile line must not flood or repaint the terminal of who reads the reason.
func TestParseReasonIsShortAndPrintable(t *testing.T) {
	_, err := accesslog.Parse(line("GET /", strings.Repeat("\x1b[2J", 10_000)+" 5"))
	if err == nil {
		t.Fatal("parsed")
	}
	if reason := err.Error(); len(reason) > 250 || strings.ContainsRune(reason, '\x1b') {
		t.Errorf("reason of %d bytes: %.300q", len(reason), reason)
	}
}

package accesslog

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// TimeLayout is how both formats write a time, as package time names layouts.
const TimeLayout = "02/Jan/2006:15:04:05 -0700"

// Entry is one line of a log: one request as the server answered it. A field
// that the server wrote as "-" is empty here. In the quoted fields and in User
// the server's escapes are undone, so these can hold any byte: don't print them
// unquoted.
//
// The strings share the memory of their line; keep a [strings.Clone] of what has
// to outlive it.
type Entry struct {
	Host  string // the client's address, IPv4 or IPv6, or its name; never empty
	Ident string // the client's RFC 1413 identity; hardly ever there
	User  string // the authenticated user
	Time  time.Time
	// Request is the request line as the client sent it. Method, Path and Proto are
	// its parts, and all empty if it is no request line of HTTP. Path is the request
	// target with its query; Proto is empty for HTTP/0.9.
	Request, Method, Path, Proto string
	Status                       int   // three digits; nginx writes 000 if no answer was begun
	Bytes                        int64 // the size of the answer's body, 0 for "-"
	Referer, UserAgent           string
}

// Parse reads one line, without its line end. Fields after the user agent, which
// many servers are set up to add, are ignored. An error names the field and the
// rule that it breaks, quotes at most a few dozen characters of the line, and the
// Entry is then zero.
func Parse(line string) (Entry, error) {
	if line == "" {
		return Entry{}, errors.New("line is empty")
	}
	host, rest, _ := strings.Cut(line, " ")
	if host == "" {
		return Entry{}, errors.New("host is empty")
	}
	ident, rest, _ := strings.Cut(rest, " ")
	// Apache doesn't escape a space in a user's name: the name ends at the time.
	user, rest, found := strings.Cut(rest, " [")
	if !found {
		return Entry{}, errors.New("no time in brackets")
	}
	written, rest, _ := strings.Cut(rest, "] ")
	at, err := parseTime(written)
	if err != nil {
		return Entry{}, err
	}
	request, rest, err := cutQuoted("request", rest)
	if err != nil {
		return Entry{}, err
	}
	status, rest, _ := strings.Cut(rest, " ")
	code, err := parseStatus(status)
	if err != nil {
		return Entry{}, err
	}
	size, rest, combined := strings.Cut(rest, " ")
	bytes, err := parseSize(size)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{
		Host: host, Ident: dash(ident), User: userName(user), Time: at,
		Request: unquote(request), Status: code, Bytes: bytes,
	}
	e.Method, e.Path, e.Proto = splitRequest(e.Request)
	if !combined {
		return e, nil
	}
	referer, rest, err := cutQuoted("referer", rest)
	if err != nil {
		return Entry{}, err
	}
	agent, _, err := cutQuoted("user agent", rest)
	if err != nil {
		return Entry{}, err
	}
	e.Referer, e.UserAgent = unquote(referer), unquote(agent)
	return e, nil
}

func parseTime(text string) (time.Time, error) {
	// UTC as the location keeps the result the same on every machine.
	at, err := time.ParseInLocation(TimeLayout, text, time.UTC)
	if err != nil || len(text) != len(TimeLayout) {
		return time.Time{}, fmt.Errorf("time %.40q is not written as %s", text, TimeLayout)
	}
	return at, nil
}

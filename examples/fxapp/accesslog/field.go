package accesslog

import (
	"fmt"
	"strconv"
	"strings"
)

// cutQuoted takes a quoted field, and the space after it, off the front of line.
// The field comes back as it is written, still escaped.
func cutQuoted(name, line string) (field, rest string, err error) {
	if !strings.HasPrefix(line, `"`) {
		return "", "", fmt.Errorf("%s is missing or not quoted: %.40q", name, line)
	}
	for i := 1; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++ // whatever it escapes doesn't end the field
		case '"':
			rest := line[i+1:]
			if rest != "" && rest[0] != ' ' {
				return "", "", fmt.Errorf("%s is not followed by a space: %.40q", name, rest)
			}
			return line[1:i], strings.TrimPrefix(rest, " "), nil
		}
	}
	return "", "", fmt.Errorf("%s has no closing quote: %.40q", name, line)
}

// unquote gives the value of a quoted field.
func unquote(field string) string { return unescape(dash(field)) }

// userName gives the value of the user field, which isn't quoted, except that
// Apache writes two quotes for a name that is present and empty.
func userName(field string) string {
	if field == `""` {
		return ""
	}
	return unquote(field)
}

// dash gives the value of a field in which "-" stands for none.
func dash(field string) string {
	if field == "-" {
		return ""
	}
	return field
}

// unescape undoes what Apache (\" \\ \n \xHH ...) and nginx (\xHH) do to bytes
// that could break a line. A backslash that begins no escape stands for itself,
// as in logs of servers that escape nothing.
func unescape(s string) string {
	i := strings.IndexByte(s, '\\')
	if i < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i >= 0 {
		out = append(out, s[:i]...)
		value, size := escape(s[i:])
		out = append(out, value)
		s = s[i+size:]
		i = strings.IndexByte(s, '\\')
	}
	return string(append(out, s...))
}

// escape reads the escape that s begins with: the byte that it stands for and
// how many bytes it takes.
func escape(s string) (value byte, size int) {
	if len(s) < 2 {
		return '\\', 1
	}
	switch s[1] {
	case '"', '\\':
		return s[1], 2
	case 'b':
		return '\b', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'v':
		return '\v', 2
	case 'x':
		if len(s) >= 4 {
			if v, err := strconv.ParseUint(s[2:4], 16, 8); err == nil {
				return byte(v), 4
			}
		}
	}
	return '\\', 1
}

func parseStatus(text string) (int, error) {
	code, err := strconv.ParseUint(text, 10, 16)
	if err != nil || len(text) != 3 {
		return 0, fmt.Errorf("status %.40q is not three digits", text)
	}
	return int(code), nil
}

func parseSize(text string) (int64, error) {
	if text == "-" {
		return 0, nil
	}
	size, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, fmt.Errorf(`size %.40q is neither a number of bytes nor "-"`, text)
	}
	return int64(size), nil
}

// splitRequest takes a request line apart. A target with spaces in it, which
// sloppy clients send, stays whole. All parts are empty if line is something
// else, such as the start of a TLS handshake.
func splitRequest(line string) (method, path, proto string) {
	method, path, found := strings.Cut(line, " ")
	if !found || !isMethod(method) {
		return "", "", ""
	}
	if i := strings.LastIndexByte(path, ' '); i >= 0 && strings.HasPrefix(path[i+1:], "HTTP/") {
		path, proto = path[:i], path[i+1:]
	}
	if path == "" || strings.HasPrefix(path, "HTTP/") {
		return "", "", ""
	}
	return method, path, proto
}

// isMethod reports whether s is written like the methods in use: the standard
// would allow any token, but what arrives under another spelling is noise.
func isMethod(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'A' || c > 'Z') && c != '-' {
			return false
		}
	}
	return s != ""
}

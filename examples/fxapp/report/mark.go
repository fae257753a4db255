package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/lockfx/lockfx"
)

func markPath(path string) string { return path + ".fence" }

// readMark returns the mark beside the report at path, or 0 if neither is there.
func readMark(path string) (lockfx.Token, error) {
	written, err := hasReport(path)
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(markPath(path))
	switch {
	case err == nil:
		return parseMark(markPath(path), string(text))
	case !errors.Is(err, fs.ErrNotExist):
		return 0, err
	case written:
		return 0, fmt.Errorf("report exists without its mark %q: restore the mark, or remove the report", markPath(path))
	}
	return 0, nil
}

func hasReport(path string) (bool, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.Mode().IsRegular():
		// A link would have a mark of its own beside it, apart from its target's.
		return false, fmt.Errorf("report must be a regular file, not %v", info.Mode())
	}
	return true, nil
}

// parseMark takes exactly what a Sink writes. Whatever else is there, a lenient
// guess at it could only be too small.
func parseMark(path, text string) (lockfx.Token, error) {
	number, ended := strings.CutSuffix(text, "\n")
	value, err := strconv.ParseInt(number, 10, 64)
	mark := lockfx.Token(value)
	if err != nil || !ended || !mark.Valid() || mark.String() != number {
		return 0, fmt.Errorf("mark %q is corrupt: %.40q is not a token in decimal and a line end", path, text)
	}
	return mark, nil
}

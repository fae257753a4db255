package lockfx_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/lockfx/lockfx"
)

func TestVersionIsTheNewestOfTheChangelog(t *testing.T) {
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	if newest := newestVersion(string(changelog)); newest != lockfx.Version {
		t.Errorf("lockfx.Version is %q, the newest entry of CHANGELOG.md is %q", lockfx.Version, newest)
	}
}

func TestNewestVersionOfAChangelog(t *testing.T) {
	for _, tt := range []struct{ name, changelog, want string }{
		{"newest first", "# Changelog\n\n## [1.2.0] - 2026-11-30\n\n## [1.1.0] - 2026-10-01\n", "1.2.0"},
		{"unreleased is no version", "## [Unreleased]\n\n## [1.2.0] - 2026-11-30\n", "1.2.0"},
		{"pre-release", "## [2.0.0-rc.1] - 2026-11-30\n", "2.0.0-rc.1"},
		{"an entry needs a date", "## [1.3.0]\n\n## [1.2.0] - 2026-11-30\n", "1.2.0"},
		{"mention in a text", "See ## [9.9.9] - 2026-11-30\n", ""},
		{"empty", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := newestVersion(tt.changelog); got != tt.want {
				t.Errorf("newestVersion(%q) = %q, want %q", tt.changelog, got, tt.want)
			}
		})
	}
}

var versionHeading = regexp.MustCompile(`(?m)^## \[(\d+\.\d+\.\d+[^\]]*)\] - \d{4}-\d{2}-\d{2}$`)

// newestVersion returns the version of the first dated heading, or "".
func newestVersion(changelog string) string {
	heading := versionHeading.FindStringSubmatch(changelog)
	if heading == nil {
		return ""
	}
	return heading[1]
}

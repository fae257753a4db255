package lockfx_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	readme    = "README.md"
	reference = "docs/reference.md"
	host      = "docs/host.md"
)

func TestGoBlocksOfTheDocumentsCompile(t *testing.T) {
	var blocks []docBlock
	for doc, text := range documents(t) {
		blocks = append(blocks, blocksOf(doc, text)...)
	}
	if err := buildBlocks(t, blocks); err != nil {
		t.Error(err)
	}
}

func TestAGoBlockThatDoesNotCompileIsFound(t *testing.T) {
	const text = "<!-- compile\nfunc f() lockfx.Token {\n\t...\n}\n-->\n```go\nreturn lockfx.NoSuchToken\n```\n"
	err := buildBlocks(t, blocksOf("planted.md", text))
	if err == nil || !strings.Contains(err.Error(), "planted.md:7") || !strings.Contains(err.Error(), "NoSuchToken") {
		t.Errorf("the planted fault was not found: %v", err)
	}
}

// The first program of the README does what the text below it shows. Tokens
// differ from run to run.
func TestTheFirstProgramPrintsWhatTheReadmeShows(t *testing.T) {
	text := documents(t)[readme]
	program := blocksOf(readme, text)[0]
	if n := strings.Count(program.shown, "\n"); n > 25 {
		t.Errorf("the first program has %d lines, want at most 25", n)
	}
	_, after, _ := strings.Cut(text, "```text\n")
	want, _, _ := strings.Cut(after, "```")
	got, err := goCommand(t, "run", overlay(t, []docBlock{program}), program.pkg)
	if digits := regexp.MustCompile(`\d+`); err != nil || digits.ReplaceAllString(got, "N") != digits.ReplaceAllString(want, "N") {
		t.Errorf("%v\ngot:  %swant: %s", err, got, want)
	}
}

// docBlock is a block of Go in a document, made a package of its own.
type docBlock struct {
	pkg   string            // its import path, relative to the module
	files map[string]string // from a file's name to its text
	shown string            // what readers see
}

// blocksOf makes packages of the blocks in a document. A block that begins with
// "package" is a whole file. Any other stands alone as declarations, or inside the
// comment `<!-- compile` before it, where a line "..." stands for the block. Such a
// comment without that line declares what all later blocks may use.
func blocksOf(doc, text string) (blocks []docBlock) {
	const place = "..."
	var around, common string
	lines := strings.Split(text, "\n")
	until := func(i int, end string) int { return i + 1 + slices.Index(lines[i+1:], end) }
	for i := 0; i < len(lines); i++ {
		switch lines[i] {
		case "<!-- compile":
			end := until(i, "-->")
			comment := strings.Join(lines[i+1:end], "\n")
			if strings.Contains(comment, place) {
				around = comment
			} else {
				common += comment + "\n"
			}
			i = end
		case "```go":
			end := until(i, "```")
			shown := strings.Join(lines[i+1:end], "\n") + "\n"
			located := fmt.Sprintf("//line %s:%d\n%s", filepath.Base(doc), i+2, shown)
			b := docBlock{
				pkg:   fmt.Sprintf("./docs/block/%s_%d", strings.TrimSuffix(filepath.Base(doc), ".md"), i+1),
				files: map[string]string{"block.go": located},
				shown: shown,
			}
			if !strings.HasPrefix(shown, "package ") {
				inside := regexp.MustCompile(`(?m)^\s*\.\.\.$`).ReplaceAllLiteralString(around, located)
				if around == "" {
					inside = located
				}
				b.files = map[string]string{"block.go": withImports(inside), "common.go": withImports(common)}
			}
			blocks, around, i = append(blocks, b), "", end
		}
	}
	return blocks
}

// docPackages are the packages that documents may name without an import.
var docPackages = map[string]string{
	"context": "context", "errors": "errors", "fmt": "fmt", "http": "net/http", "net": "net", "os": "os", "sync": "sync", "time": "time",
	"fx": "go.uber.org/fx", "zap": "go.uber.org/zap",
	"testing": "testing", "storetest": "github.com/lockfx/lockfx/storetest", "storekit": "github.com/lockfx/lockfx/storekit",
	"lockfx": "github.com/lockfx/lockfx", "fxlock": "github.com/lockfx/lockfx/fxlock",
	"layered": "github.com/lockfx/lockfx/layered", "layeredfx": "github.com/lockfx/lockfx/layered/layeredfx",
	"memoize": "github.com/lockfx/lockfx/memoize", "filestore": "github.com/lockfx/lockfx/filestore",
}

func withImports(body string) string {
	source := "package block\n\n"
	for name, path := range docPackages {
		if regexp.MustCompile(`\b` + name + `\.[A-Z]`).MatchString(body) {
			source += fmt.Sprintf("import %s %q\n", name, path)
		}
	}
	return source + "\n" + body
}

func documents(t *testing.T) map[string]string {
	t.Helper()
	found, err := filepath.Glob("docs/*.md")
	if err != nil || len(found) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	docs := map[string]string{}
	for _, doc := range append(found, readme, "CHANGELOG.md", "CONTRIBUTING.md") {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		docs[filepath.ToSlash(doc)] = string(text)
	}
	return docs
}

func buildBlocks(t *testing.T, blocks []docBlock) error {
	t.Helper()
	args := []string{"build", overlay(t, blocks), "-o", os.DevNull}
	for _, b := range blocks {
		args = append(args, b.pkg)
	}
	_, err := goCommand(t, args...)
	return err
}

// overlay returns the flag that shows the go command blocks as if they were
// packages of this module, which then settles what they import.
func overlay(t *testing.T, blocks []docBlock) string {
	t.Helper()
	replace := map[string]string{}
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, b := range blocks {
		for name, text := range b.files {
			pretended, err := filepath.Abs(filepath.Join(b.pkg, name))
			if err != nil {
				t.Fatal(err)
			}
			replace[pretended] = write(filepath.Base(b.pkg)+"_"+name, []byte(text))
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	return "-overlay=" + write("overlay.json", data)
}

// goCommand returns what the go command prints, and an error with what it says
// about a failure.
func goCommand(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var stderr strings.Builder
	cmd := exec.Command("go", args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("go %s: %w\n%s", args[0], err, stderr.String())
	}
	return string(out), err
}

// An id in the name of a test is explained in docs/cases.md, and each case has a test. A test
// that a document names exists.
func TestDocumentsAndTests_NameEachOther(t *testing.T) {
	row := regexp.MustCompile(`(?m)^\| ([A-Z]\d\d) \|`)
	id := regexp.MustCompile(`^Test\w*?_([A-Z]\d\d)_`)
	named := regexp.MustCompile("`(Test\\w+)`")
	docs, explained, shown := documents(t), map[string]bool{}, map[string]bool{}
	for _, found := range row.FindAllStringSubmatch(docs["docs/cases.md"], -1) {
		explained[found[1]] = true
	}
	tests := testsBelow(t, ".")
	for name, path := range tests {
		if found := id.FindStringSubmatch(name); found != nil {
			shown[found[1]] = true
			if !explained[found[1]] {
				t.Errorf("%s: docs/cases.md does not explain %s", path, found[1])
			}
		}
	}
	for id := range explained {
		if !shown[id] {
			t.Errorf("docs/cases.md: no test shows %s", id)
		}
	}
	for doc, text := range docs {
		for _, found := range named.FindAllStringSubmatch(text, -1) {
			if tests[found[1]] == "" {
				t.Errorf("%s: there is no %s", doc, found[1])
			}
		}
	}
}

// testsBelow returns the tests below a folder, and the file of each.
func testsBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	tests := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range declared.FindAllSubmatch(text, -1) {
			tests[string(found[1])] = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}

package lockfx_test

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const modulePath = "github.com/lockfx/lockfx"

// A room is a row of the rule: the packages in dir may import these rooms of
// ours, these modules of others, and the standard library without testing.
//
// A dir or a room that ends in "/..." stands for everything below it as well.
type room struct {
	dir     string
	rooms   []string
	modules []string
	testing bool // may import package testing
	free    bool // may import every room and every module
}

const (
	uberFx      = "go.uber.org/fx"
	uberDig     = "go.uber.org/dig"
	uberZap     = "go.uber.org/zap"
	mapstruct   = "github.com/go-viper/mapstructure/v2"
	levenshtein = "github.com/agnivade/levenshtein"
	fsnotify    = "github.com/fsnotify/fsnotify"
	xsync       = "golang.org/x/sync"
	xsys        = "golang.org/x/sys"
)

// rule says who may import whom. The first row that names a package decides.
// Arrows point to the contract, and a client of a server stays in the module of
// its store.
var rule = []room{
	{dir: "."},
	{dir: "internal/lifecycle", rooms: []string{"."}},
	{dir: "internal/memstore", rooms: []string{".", "storekit"}},
	{dir: "internal/queue", rooms: []string{".", "internal/lifecycle"}, modules: []string{xsync}},
	{dir: "internal/runscope", rooms: []string{"."}, modules: []string{uberDig}},
	{dir: "storetest", rooms: []string{"."}, testing: true},
	{dir: "storekit", rooms: []string{"."}},
	{dir: "internal/storemodel", rooms: []string{"."}},

	{
		dir:     "fxlock",
		rooms:   []string{".", "internal/lifecycle", "internal/memstore", "internal/runscope", "internal/queue", "fxlock/internal/..."},
		modules: []string{uberFx, uberZap},
	},
	{dir: "fxlock/internal/mapdecode", modules: []string{mapstruct, levenshtein}},
	{dir: "fxlock/internal/campaign", rooms: []string{".", "internal/queue"}},
	{dir: "fxlock/internal/notify"},
	{dir: "fxlock/internal/faults", rooms: []string{"."}},
	{dir: "fxlock/internal/graph", rooms: []string{"."}, modules: []string{uberFx}},
	{dir: "fxlock/internal/plan", rooms: []string{".", "internal/runscope", "fxlock/internal/graph"}, modules: []string{uberFx, uberZap}},
	{dir: "fxlock/internal/stop", rooms: []string{"internal/lifecycle"}},
	{
		dir:     "fxlock/internal/...",
		rooms:   []string{".", "internal/lifecycle", "internal/memstore", "internal/runscope", "fxlock/internal/..."},
		modules: []string{uberFx, uberZap},
	},

	{dir: "layered", rooms: []string{".", "layered/internal/..."}},
	{dir: "layered/internal/...", rooms: []string{"layered/internal/..."}, modules: []string{xsys}},
	{dir: "layered/layeredfx", rooms: []string{".", "layered", "fxlock"}, modules: []string{uberFx, uberZap}},
	{dir: "memoize", rooms: []string{"."}},
	{dir: "filestore", rooms: []string{".", "storekit"}, modules: []string{fsnotify, xsys}},

	{dir: "redisstore", rooms: []string{".", "storekit"}, modules: []string{"github.com/redis/go-redis/v9"}},
	{dir: "etcdstore", rooms: []string{".", "storekit"}, modules: []string{"go.etcd.io/etcd/api/v3", "go.etcd.io/etcd/client/v3", "google.golang.org/grpc"}},
	{dir: "pgstore", rooms: []string{".", "storekit"}, modules: []string{"github.com/jackc/pgx/v5"}},

	{dir: "examples/...", free: true},
	{dir: "integration/...", free: true, testing: true},
	{dir: "torture/...", free: true, testing: true},
	{dir: "bench/...", free: true, testing: true},
	{dir: "tools", free: true},
}

func TestImportsPointOneWay(t *testing.T) {
	found, err := packagesBelow(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(found["."], "context") {
		t.Fatalf("the imports of the root package were not read: %v", found["."])
	}
	for _, v := range violations(rule, found) {
		t.Error(v)
	}
}

func TestViolationsNameEveryBadArrow(t *testing.T) {
	for _, tt := range []struct{ from, to string }{
		{".", uberFx},
		{".", "testing"},
		{".", modulePath + "/internal/lifecycle"},
		{"internal/lifecycle", modulePath + "/internal/memstore"},
		{"internal/lifecycle", modulePath + "/fxlock"},
		{"internal/lifecycle", uberZap},
		{"internal/memstore", modulePath + "/internal/lifecycle"},
		{"internal/memstore", uberDig},
		{"internal/memstore", "testing/synctest"},
		{"internal/runscope", uberFx},
		{"internal/runscope", modulePath + "/fxlock"},
		{"storetest", modulePath + "/internal/memstore"},
		{"internal/storemodel", modulePath + "/internal/memstore"},
		{"fxlock", uberDig},
		{"fxlock", "testing"},
		{"fxlock", uberFx + "tension"},
		{"fxlock", modulePath + "/layered"},
		{"fxlock", modulePath + "/examples/fxapp"},
		{"fxlock/internal/config", modulePath + "/fxlock"},
		{"fxlock/internal/config", uberDig},
		{"layered", uberFx},
		{"layered", modulePath + "/fxlock"},
		{"layered/layeredfx", modulePath + "/internal/lifecycle"},
		{"redisstore", "github.com/jackc/pgx/v5"},
		{"examples/fxapp", "testing"},
	} {
		imports := map[string][]string{tt.from: {"context", tt.to}}
		want := []string{tt.from + ": must not import " + tt.to}
		if got := violations(rule, imports); !slices.Equal(got, want) {
			t.Errorf("%s imports %s: violations = %q, want %q", tt.from, tt.to, got, want)
		}
	}
	unnamed := map[string][]string{"internal/new": nil, "fxlock/new": nil}
	want := []string{"fxlock/new: no row of the rule names this package", "internal/new: no row of the rule names this package"}
	if got := violations(rule, unnamed); !slices.Equal(got, want) {
		t.Errorf("violations = %q, want %q", got, want)
	}
}

func TestViolationsAcceptEveryGoodArrow(t *testing.T) {
	good := map[string][]string{
		".":                      {"context", "unicode/utf8"},
		"internal/lifecycle":     {modulePath, "sync/atomic"},
		"internal/memstore":      {modulePath},
		"internal/runscope":      {modulePath, uberDig, "reflect"},
		"storetest":              {modulePath, "testing", "testing/synctest"},
		"fxlock":                 {modulePath, modulePath + "/internal/lifecycle", modulePath + "/fxlock/internal/config", uberFx, uberFx + "/fxevent", uberZap + "/zapcore"},
		"fxlock/internal/config": {modulePath, modulePath + "/fxlock/internal/hint", uberFx},
		"layered/layeredfx":      {modulePath + "/layered", modulePath + "/fxlock", uberFx},
		"pgstore":                {modulePath, "github.com/jackc/pgx/v5/pgxpool"},
		"examples/fxapp":         {modulePath + "/fxlock", uberFx, "os/signal"},
	}
	if got := violations(rule, good); got != nil {
		t.Errorf("violations = %q, want none", got)
	}
}

func TestPackagesBelowReadsWhatIsBuilt(t *testing.T) {
	source := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	tree := fstest.MapFS{
		"a.go":                source("package a\n\nimport \"context\"\n"),
		"a_test.go":           source("package a\n\nimport \"testing\"\n"),
		"b/b_windows.go":      source("//go:build windows\n\npackage b\n\nimport \"os\"\n"),
		"b/empty.go":          source("package b\n"),
		"b/gen.go":            source("//go:build ignore\n\npackage main\n\nimport \"log\"\n"),
		"b/testdata/t.go":     source("package t\n\nimport \"log\"\n"),
		"c/c.go":              source("package c\n"),
		".cache/d/d.go":       source("package d\n\nimport \"log\"\n"),
		"onlytests/e_test.go": source("package e\n\nimport \"testing\"\n"),
	}
	want := map[string][]string{".": {"context"}, "b": {"os"}, "c": nil}
	got, err := packagesBelow(tree)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("packagesBelow = %q, want %q", got, want)
	}
}

// violations returns a line for each import that the rule forbids, and for each
// package that no row names. imports maps a package's folder to what it imports.
func violations(rule []room, imports map[string][]string) []string {
	var found []string
	for dir, paths := range imports {
		i := slices.IndexFunc(rule, func(r room) bool { return within(r.dir, dir) })
		if i < 0 {
			found = append(found, dir+": no row of the rule names this package")
			continue
		}
		for _, p := range paths {
			if !rule[i].allows(p) {
				found = append(found, dir+": must not import "+p)
			}
		}
	}
	slices.Sort(found)
	return found
}

func (r room) allows(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	switch {
	case first == "testing":
		return r.testing
	case !strings.Contains(first, "."): // the standard library
		return true
	case r.free:
		return true
	case importPath == modulePath:
		return slices.Contains(r.rooms, ".")
	}
	if dir, ok := strings.CutPrefix(importPath, modulePath+"/"); ok {
		return slices.ContainsFunc(r.rooms, func(pattern string) bool { return within(pattern, dir) })
	}
	return slices.ContainsFunc(r.modules, func(module string) bool { return within(module+"/...", importPath) })
}

// within reports whether pattern names p: exactly, or from above by "/...".
func within(pattern, p string) bool {
	above, ok := strings.CutSuffix(pattern, "/...")
	return p == above || ok && strings.HasPrefix(p, above+"/")
}

// packagesBelow returns what each package of every module imports outside of its
// tests. It reads files rather than asking for a build, so that it sees the files
// of every system and every tag.
func packagesBelow(tree fs.FS) (map[string][]string, error) {
	imports := map[string][]string{}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case entry.IsDir() && (base == "testdata" || base != "." && base[0] == '.'):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		source, err := fs.ReadFile(tree, name)
		if err != nil || bytes.HasPrefix(source, []byte("//go:build ignore\n")) {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		found := imports[dir]
		for _, spec := range file.Imports {
			if p := strings.Trim(spec.Path.Value, "`\""); !slices.Contains(found, p) {
				found = append(found, p)
			}
		}
		imports[dir] = found
		return nil
	})
	return imports, err
}

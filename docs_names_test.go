package lockfx_test

import (
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const migration = "docs/migrating-from-lite-di-lock.md"

func TestGoNamesInTheDocumentsExist(t *testing.T) {
	packages := typedPackages(t)
	for doc, text := range documents(t) {
		for _, name := range goNames(text) {
			if !exists(packages, name) {
				t.Errorf("%s: there is no %s", doc, name)
			}
		}
	}
	for name, want := range map[string]bool{
		"fxlock.Lock.Acquire": true, "fxlock.MemoryStore.Inspect": true, "lockfx.Grant.OK": true, "context.Cause": true,
		"fxlock.Lock.Steal": false, "lockfx.Grants": false, "fxlock.newLock": false,
	} {
		if got := exists(packages, name); got != want {
			t.Errorf("exists(%s) = %v, want %v", name, got, want)
		}
	}
}

// What a user can set, match or see is in the document that explains it.
func TestTheDocumentsAreComplete(t *testing.T) {
	packages, docs := typedPackages(t), documents(t)
	root, glue := packages["lockfx"], packages["fxlock"]
	named := func(prefix string) func(types.Object) bool {
		return func(o types.Object) bool { return strings.HasPrefix(o.Name(), prefix) }
	}
	for _, tt := range []struct {
		doc  string
		pkg  *types.Package
		kind string
		is   func(types.Object) bool
	}{
		{readme, glue, "option", returns(glue, "Option", "RunOption")},
		{readme, root, "error", named("Err")},
		{"docs/concepts.md", root, "state", ofType(root, "State")},
		{"docs/concepts.md", root, "reason", ofType(root, "Reason")},
		{"docs/concepts.md", root, "event", ofType(root, "EventKind")},
	} {
		found := 0
		for _, name := range tt.pkg.Scope().Names() {
			o := tt.pkg.Scope().Lookup(name)
			if !o.Exported() || !tt.is(o) {
				continue
			}
			found++
			if !regexp.MustCompile(`\b` + name + `\b`).MatchString(docs[tt.doc]) {
				t.Errorf("%s says nothing of the %s %s", tt.doc, tt.kind, name)
			}
		}
		if found < 5 {
			t.Errorf("%s: only %d names of the kind %q were looked for", tt.doc, found, tt.kind)
		}
	}
}

func TestLinksInTheDocumentsLeadSomewhere(t *testing.T) {
	code := regexp.MustCompile("(?s)```.*?```|`[^`\n]+`")
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	for doc, text := range documents(t) {
		for _, found := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(doc), found[1])); err != nil {
				t.Errorf("%s: %v", doc, err)
			}
		}
	}
}

// Whoever comes from lite-di-lock finds each of its names and promises in a table,
// next to a Go name that exists or the word none.
func TestTheMigrationTablesAreComplete(t *testing.T) {
	packages := typedPackages(t)
	known := func(name string) bool { return exists(packages, name) }
	var theirs string
	for line := range strings.Lines(documents(t)[migration]) {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 3 {
			t.Errorf("%d cells, want 3: %s", len(cells), line)
			continue
		}
		ours := strings.TrimSpace(cells[1])
		if ours == "Go" { // the head of a table
			continue
		}
		theirs += cells[0] + "\n"
		if ours != "none" && !slices.ContainsFunc(goNames(ours), known) {
			t.Errorf("no Go name, and not the word none: %s", line)
		}
	}
	for _, name := range strings.Fields(`
		Lock container store key ttlMs heartbeatMs now timers tokenName holderName onLost
		acquire() release() run(fn) tick() dispose() state held fencingToken
		store.acquire store.renew store.release MemoryStore bindLock NotAcquired AggregateError VERSION
		STATES.IDLE STATES.ACQUIRING STATES.HELD STATES.RELEASING STATES.RELEASED STATES.LOST
		REASONS.NONE REASONS.RELEASED REASONS.HEARTBEAT_FAILED REASONS.STORE_ERROR REASONS.FENCE_REGRESSED
		REASONS.DISPOSED REASONS.TIMER_UNARMABLE
		lock:fence lock:holder did-you-mean whitelist non-reentrant RAII funnel zero-GC torture`) {
		if !strings.Contains(theirs, name) {
			t.Errorf("%s has no row for %s", migration, name)
		}
	}
}

// goNames returns what is named in code spans, such as lockfx.Token.String.
func goNames(text string) (names []string) {
	span := regexp.MustCompile("`[^`\n]+`")
	name := regexp.MustCompile(`\b[a-z]+\.[A-Z]\w*(?:\.[A-Z]\w*)?`)
	for _, s := range span.FindAllString(text, -1) {
		for _, n := range name.FindAllString(s, -1) {
			if pkg, _, _ := strings.Cut(n, "."); docPackages[pkg] != "" {
				names = append(names, n)
			}
		}
	}
	return names
}

// exists reports whether name is exported by a package, or by a type of it.
func exists(packages map[string]*types.Package, name string) bool {
	part := strings.Split(name, ".")
	o := packages[part[0]].Scope().Lookup(part[1])
	if o == nil || !o.Exported() || len(part) == 2 {
		return o != nil && o.Exported()
	}
	member, _, _ := types.LookupFieldOrMethod(o.Type(), true, o.Pkg(), part[2])
	return member != nil
}

// returns finds functions whose only result implements one of the interfaces.
func returns(pkg *types.Package, interfaces ...string) func(types.Object) bool {
	return func(o types.Object) bool {
		sig, ok := o.Type().(*types.Signature)
		return ok && sig.Results().Len() == 1 && slices.ContainsFunc(interfaces, func(name string) bool {
			wanted := pkg.Scope().Lookup(name).Type().Underlying().(*types.Interface)
			return types.Implements(sig.Results().At(0).Type(), wanted)
		})
	}
}

func ofType(pkg *types.Package, name string) func(types.Object) bool {
	return func(o types.Object) bool {
		_, constant := o.(*types.Const)
		return constant && o.Type() == pkg.Scope().Lookup(name).Type()
	}
}

func typedPackages(t *testing.T) map[string]*types.Package {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, path := range docPackages {
		args = append(args, path)
	}
	out, err := goCommand(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(out) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
	}
	read := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	packages := map[string]*types.Package{}
	for name, path := range docPackages {
		if packages[name], err = read.Import(path); err != nil {
			t.Fatal(err)
		}
	}
	return packages
}

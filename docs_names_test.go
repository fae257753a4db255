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
		"layered.Call.State": true, "layered.Result.Lock": true, "layered.Call.Token": false, "memoize.Forget": false,
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
	root, glue, layered := packages["lockfx"], packages["fxlock"], packages["layered"]
	named := func(prefix string) func(types.Object) bool {
		return func(o types.Object) bool { return strings.HasPrefix(o.Name(), prefix) }
	}
	for _, tt := range []struct {
		doc     string
		pkg     *types.Package
		kind    string
		is      func(types.Object) bool
		atLeast int // of the kind are known, or the search is broken
	}{
		{reference, glue, "option", returns(glue, "Option", "RunOption"), 5},
		{reference, root, "error", named("Err"), 5},
		{host, layered, "option", returns(layered, "Option", "LockerOption"), 9},
		{host, packages["memoize"], "error", named("Err"), 3},
		{host, packages["filestore"], "option", returns(packages["filestore"], "Option"), 2},
		{host, packages["filestore"], "error", named("Err"), 2},
		{"docs/concepts.md", root, "state", ofType(root, "State"), 5},
		{"docs/concepts.md", root, "reason", ofType(root, "Reason"), 5},
		{"docs/concepts.md", root, "event", ofType(root, "EventKind"), 5},
		{loqkit, layered, "option", returns(layered, "Option", "LockerOption"), 9},
		{loqkit, layered, "error", named("Err"), 1},
		{loqkit, layered, "state", ofType(layered, "State"), 4},
		{loqkit, layered, "outcome", ofType(layered, "Outcome"), 3},
		{loqkit, layered, "layer", ofType(layered, "Layer"), 4},
		{loqkit, layered, "mode", ofType(layered, "Mode"), 4},
		{loqkit, packages["memoize"], "function", func(o types.Object) bool { _, is := o.(*types.Func); return is }, 2},
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
		if found < tt.atLeast {
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

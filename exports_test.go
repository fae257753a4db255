package lockfx_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// Whatever a package exports is shown in an example: as name.X where it is a name
// of the package, as .X where it is a method.
func TestEveryExportedNameIsInAnExample(t *testing.T) {
	for _, dir := range []string{".", "fxlock"} {
		exported, shown := exportsOf(t, os.DirFS(dir), dir)
		if len(exported) < 30 {
			t.Fatalf("%s: only %d exported names were found", dir, len(exported))
		}
		for _, name := range exported {
			if !shown[name] {
				t.Errorf("%s: no example shows %s", dir, name)
			}
		}
	}
}

func TestANameWithoutAnExampleIsFound(t *testing.T) {
	planted := fstest.MapFS{
		"p.go": {Data: []byte("package p\n\ntype T int\n\nfunc (T) M() {}\n\nfunc (T) String() string { return \"\" }\n\n" +
			"const A, B = 1, 2\n\ntype I interface{ N() }\n\nfunc F() {}\n\nfunc hidden() {}\n")},
		"example_test.go": {Data: []byte("package p_test\n\nimport \"p\"\n\nfunc Example() {\n\tvar x p.T\n\tx.M()\n\t_ = p.A\n}\n\n" +
			"func helper() { p.F() }\n\nfunc TestF() { _ = p.B }\n")},
		"other_test.go": {Data: []byte("package p_test\n\nimport \"p\"\n\nfunc TestB() { _ = p.B; var i p.I; i.N() }\n")},
	}
	exported, shown := exportsOf(t, planted, "p")
	missing := slices.DeleteFunc(slices.Clone(exported), func(name string) bool { return shown[name] })
	if want := []string{".N", "B", "I"}; !slices.Equal(missing, want) || len(exported) != 7 {
		t.Errorf("of %q, %q are not shown, want %q", exported, missing, want)
	}
}

// exportsOf returns the exported names of the package in dir, and which of them its
// files of examples show: those called example*_test.go, without their tests.
func exportsOf(t *testing.T, dir fs.FS, name string) (exported []string, shown map[string]bool) {
	t.Helper()
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files, examples []*ast.File
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		text, err := fs.ReadFile(dir, e.Name())
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(fset, filepath.Join(name, e.Name()), text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case !strings.HasSuffix(e.Name(), "_test.go"):
			files = append(files, file)
		case strings.HasPrefix(e.Name(), "example"):
			examples = append(examples, file)
		}
	}
	pkg, err := doc.NewFromFiles(fset, files, name)
	if err != nil {
		t.Fatal(err)
	}
	return namesOf(pkg), shownIn(examples, pkg.Name)
}

// namesOf lists what pkg exports; methods begin with a dot. Those that fmt and
// errors call by themselves are left out.
func namesOf(pkg *doc.Package) (names []string) {
	values := func(groups []*doc.Value) {
		for _, g := range groups {
			names = append(names, g.Names...)
		}
	}
	funcs := func(prefix string, list []*doc.Func) {
		for _, f := range list {
			if !slices.Contains([]string{"String", "Error", "Is", "Unwrap"}, f.Name) {
				names = append(names, prefix+f.Name)
			}
		}
	}
	values(pkg.Consts)
	values(pkg.Vars)
	funcs("", pkg.Funcs)
	for _, typ := range pkg.Types {
		names = append(names, typ.Name)
		values(typ.Consts)
		values(typ.Vars)
		funcs("", typ.Funcs)
		funcs(".", typ.Methods)
		ast.Inspect(typ.Decl, func(n ast.Node) bool {
			if i, ok := n.(*ast.InterfaceType); ok {
				for _, m := range i.Methods.List {
					for _, id := range m.Names {
						names = append(names, "."+id.Name)
					}
				}
			}
			return true
		})
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !ast.IsExported(strings.TrimPrefix(name, ".")) })
	slices.Sort(names)
	return slices.Compact(names)
}

// shownIn collects the selectors of the files, except for those in tests.
func shownIn(files []*ast.File, pkg string) map[string]bool {
	shown := map[string]bool{}
	for _, file := range files {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == pkg {
					shown[sel.Sel.Name] = true
				} else {
					shown["."+sel.Sel.Name] = true
				}
				return true
			})
		}
	}
	return shown
}

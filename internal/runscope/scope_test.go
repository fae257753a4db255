package runscope_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/dig"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/internal/runscope"
)

func TestBuiltOnceInARunAndAnewInTheNext(t *testing.T) {
	type user struct{ *Writer }
	built, unreached := 0, 0
	w := world{app: []any{newApp}, ctors: perRun(
		func(db *DB, token lockfx.Token) (*Writer, error) { built++; return newWriter(db, token), nil },
		func(w *Writer) user { return user{w} },
		func(*Cache) []byte { unreached++; return nil },
	)}
	w.ctors[2].Build = func() (any, error) {
		unreached++
		return func(*Cache) []byte { unreached++; return nil }, nil
	}
	body := func(a *Writer, u user, b *Writer) {
		if a != b || u.Writer != a {
			t.Error("the run saw two writers")
		}
	}
	source := w.source(t, body)
	unreached = 0
	for run := range 3 {
		call(t, open(t, source, lockfx.Token(run)), body)
		if built != run+1 {
			t.Errorf("run %d: %d writers were built", run, built)
		}
	}
	if unreached != 0 {
		t.Errorf("the unreached constructor was touched %d times", unreached)
	}
}

func TestErrorsOfConstructors(t *testing.T) {
	cause := errors.New("disk full")
	give := func(fn func(*DB) (*Writer, error)) error {
		w := world{app: []any{newApp}, ctors: perRun(fn)}
		w.ctors[0].Label = "NewWriter"
		args, err := w.open(t, func(*Writer) {}, 1).Args()
		if args != nil {
			t.Error("arguments beside an error")
		}
		return err
	}
	check := func(err error, text string) {
		t.Helper()
		if err == nil || text != strings.SplitN(err.Error(), "\n", 2)[0] {
			t.Errorf("got %v\nwant %s", err, text)
		}
		var ctor *runscope.CtorError
		if !errors.As(err, &ctor) || ctor.Label != "NewWriter" {
			t.Errorf("%v does not name its constructor", err)
		}
	}

	err := give(func(*DB) (*Writer, error) { return nil, cause })
	check(err, "constructor NewWriter: disk full")
	if !errors.Is(err, cause) {
		t.Errorf("%v does not wrap its cause", err)
	}

	err = give(func(*DB) (*Writer, error) { panic(cause) })
	check(err, "constructor NewWriter: panic: disk full")
	var p *lockfx.PanicError
	if !errors.Is(err, cause) || !errors.As(err, &p) || !strings.Contains(string(p.Stack), "TestErrorsOfConstructors") {
		t.Errorf("%v does not wrap the panic and its stack", err)
	}

	err = give(func(*DB) (*Writer, error) { panic("odd") })
	check(err, "constructor NewWriter: panic: odd")

	// A constructor that resolves from a container of its own.
	err = give(func(*DB) (*Writer, error) {
		return nil, fmt.Errorf("own container: %w", dig.RootCause(dig.New().Invoke(func(*Cache) {})))
	})
	check(err, "constructor NewWriter: own container: missing type: *runscope_test.Cache")
}

func TestGoexitInConstructor(t *testing.T) {
	first := true
	w := world{app: []any{newApp}, ctors: perRun(func(db *DB, token lockfx.Token) *Writer {
		if first {
			first = false
			runtime.Goexit()
		}
		return newWriter(db, token)
	})}
	scope := w.open(t, func(*Writer) {}, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = scope.Args()
	}()
	<-done
	if _, err := scope.Args(); err != nil {
		t.Errorf("the scope is stuck: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	body := func(*Writer, context.Context) {}
	cause := errors.New("no container")
	var built any = newWriter
	var failure error
	w := world{app: []any{newApp}, ctors: []runscope.Ctor{{Build: func() (any, error) { return built, failure }, Label: "NewWriter"}}}
	source := w.source(t, body)
	check := func(run []reflect.Value, text string) {
		t.Helper()
		if _, err := source.Open(run); err == nil || err.Error() != text {
			t.Errorf("got %v\nwant %s", err, text)
		}
	}
	full := runValues(1, nil)
	check(full[:1], "run value lockfx.Token: is wanted and has no value")
	check([]reflect.Value{{}, full[1], {}, {}}, "run value context.Context: is wanted and has no value")
	built = func() *Writer { return nil }
	check(full, "constructor NewWriter: it was a func(*runscope_test.DB, lockfx.Token) *runscope_test.Writer when it was checked and is a func() *runscope_test.Writer now")
	failure = cause
	check(full, "constructor NewWriter: no container")
	if _, err := source.Open(full); !errors.Is(err, cause) {
		t.Errorf("%v does not wrap its cause", err)
	}
	built, failure = newWriter, nil
	if _, err := source.Open(full[:2]); err != nil {
		t.Errorf("values that nobody wants are missing: %v", err)
	}
	wrong := []reflect.Value{reflect.ValueOf("no context"), full[1]}
	scope, err := source.Open(wrong)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scope.Args(); err == nil || !strings.Contains(err.Error(), "context.Context") {
		t.Errorf("a value of a wrong type: %v", err)
	}
}

func TestConcurrentRunsOfOneSource(t *testing.T) {
	w := world{app: []any{newApp}, ctors: perRun(newWriter, func(w *Writer) string { return w.Token.String() })}
	w.ctors[1].Group = "steps"
	body := func(writer *Writer, token lockfx.Token, p params) {
		if writer.Token != token || p.Fence != token || !sameElements(p.Steps, "a", "b", "c", token.String()) {
			t.Errorf("run %v saw %v and %v", token, writer, p)
		}
	}
	source := w.source(t, body)
	var runs sync.WaitGroup
	for worker := range 8 {
		runs.Go(func() {
			for i := range 50 {
				token := lockfx.Token(worker*1000 + i + 1)
				scope, err := source.Open(runValues(token, nil))
				if err != nil {
					t.Error(err)
					return
				}
				args, err := scope.Args()
				if err != nil {
					t.Error(err)
					return
				}
				reflect.ValueOf(body).Call(args)
				scope.Close()
			}
		})
	}
	runs.Wait()
}

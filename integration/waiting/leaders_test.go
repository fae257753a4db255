package queue_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
)

// election is the beginning of a term.
type election struct {
	key   string
	token lockfx.Token
	at    time.Time
}

// campaign is an option for an application that leads key until it is told to end, and
// tells when a term begins.
func campaign(key string, ttl time.Duration, s store, elected chan<- election) fx.Option {
	return fxlock.Module(key, fxlock.Named(), fxlock.WithTTL(ttl), fxlock.WithStore(s),
		fxlock.Lead(func(ctx context.Context, token lockfx.Token) error {
			elected <- election{key, token, time.Now()}
			<-ctx.Done()
			return nil
		}))
}

// application is one that was not started. Its start and its stop have a lot of time.
func application(opts ...fx.Option) *fx.App {
	return fx.New(append(opts, fx.NopLogger, fx.StartTimeout(within), fx.StopTimeout(within))...)
}

// leaders is an application that leads many keys.
type leaders struct {
	Place place
	Keys  []string
	TTL   time.Duration
}

func keysOf(t *testing.T, n int) (keys []string) {
	for i := range n {
		keys = append(keys, t.Name()+" "+strconv.Itoa(i))
	}
	return keys
}

// lead calls leads once the application leads all of its keys, and goes on until ctx
// ends.
func (l leaders) lead(ctx context.Context, leads func(map[string]lockfx.Token)) error {
	p, err := l.Place.open(ctx)
	if err != nil {
		return err
	}
	elected := make(chan election, len(l.Keys))
	var modules []fx.Option
	for _, key := range l.Keys {
		modules = append(modules, campaign(key, l.TTL, p, elected))
	}
	if err := application(modules...).Start(ctx); err != nil {
		return err
	}
	tokens := map[string]lockfx.Token{}
	for len(tokens) < len(l.Keys) {
		select {
		case e := <-elected:
			tokens[e.key] = e.token
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	leads(tokens)
	<-ctx.Done()
	return errors.New("nobody ended this process")
}

// standBy starts an application that stands by for all keys, and returns once it waits
// for each of them. The application stops with the test.
func standBy(t *testing.T, p *process, keys []string, ttl time.Duration) <-chan election {
	t.Helper()
	elected := make(chan election, len(keys))
	var modules []fx.Option
	var all []*observed
	for _, key := range keys {
		o := observe(p)
		all = append(all, o)
		modules = append(modules, campaign(key, ttl, o, elected))
	}
	app := application(modules...)
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := app.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for _, o := range all {
		if err := o.awaitLine(ctx); err != nil {
			t.Fatal(err)
		}
	}
	return elected
}

// next returns the next election.
func next(t *testing.T, elected <-chan election) election {
	t.Helper()
	select {
	case e := <-elected:
		return e
	case <-time.After(within):
		t.Fatal("nobody was elected")
		return election{}
	}
}

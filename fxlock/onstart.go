package fxlock

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/faults"
	"github.com/lockfx/lockfx/fxlock/internal/graph"
	"github.com/lockfx/lockfx/fxlock/internal/stop"
	"github.com/lockfx/lockfx/internal/lifecycle"
)

// OnStart runs fn under the lock while the application starts, such as a migration
// that one replica runs while the others wait for it. If fn fails, the start fails with
// its cause; the lock is released in every case. [If] says whether the work is still
// needed: a run that it skips does not fail the start.
//
// It waits for the lock, and works, for as long as the context of the start lasts, less
// a twentieth of that, a second at most, so that the start can report the cause;
// [Wait] can make the wait shorter. fx.StartTimeout, 15 s unless set, must leave time for
// the work of other replicas, and for the lease of one that dies in its work. The ttl of
// a module with an OnStart is therefore 5 s unless [WithTTL] sets it, and a ttl that is not
// shorter than the start logs a warning. If fn ignores the end of its context, it keeps
// its lease until it returns, even though the start has failed by then.
//
// When fn has returned nil under a lease that is still held, the work is done: a later
// failure of the teardown or the release is logged and does not fail the start. If the
// lease was lost before, the start fails, since another replica may have worked meanwhile.
//
// M is a marker type that you define, and M is in the graph: the OnStart hooks of what
// takes an M run after the work.
//
//	type Migrated struct{}
//
//	fxlock.Module("migrations", fxlock.OnStart[Migrated](migrate, fxlock.If(pending)))
//	func NewServer(lc fx.Lifecycle, _ Migrated) *Server // its OnStart follows migrate
//
// A [Lead] and a [Body] have their hooks after the work with [After].
//
// CONSTRUCTORS STILL RUN FIRST: fx builds everything before it starts anything, so
// the constructor of what takes an M must not rely on the work yet. The work runs
// even if nothing takes M. A test that replaces it, fx.Replace(Migrated{}), keeps
// it from running.
//
// fn takes dig parameters of any kind, as for [Body], and returns nothing or an
// error. It runs at every start of the application.
func OnStart[M any](fn any, opts ...RunOption) Option {
	run, err := newRunSettings(append([]RunOption{WaitForever()}, opts...))
	skip := run.skipOn.value
	skip.unwanted = true
	run.skipOn.set(skip)
	marker := reflect.TypeFor[M]()
	title := fmt.Sprintf("OnStart[%v]", marker)
	b := plainBody[onStartOf[M]](title, fn, run, graph.CallSite())
	b.purpose = asOnStart{marker}
	b.text = bodyText(title, fn, opts)
	o := b.option(errors.Join(err, checkMarker(marker)))
	return option{b.text, func(s *settings) {
		s.starts = true
		o.applyLock(s)
	}}
}

// onStartOf is the func type of the work behind an M.
type onStartOf[M any] func(context.Context) error

// asOnStart runs the body in a start hook, and provides the marker.
type asOnStart struct{ marker reflect.Type }

func (p asOnStart) provide(b *body, s *settings) []any {
	return []any{graph.Located(b.fromReady(s, p.marker, func(ready *readyBody, lc fx.Lifecycle) reflect.Value {
		lc.Append(fx.StartHook(func(ctx context.Context) error {
			ctx, cancel := ready.withinStart(ctx)
			defer cancel()
			err := ready.work(ctx)
			if over := context.Cause(ctx); err != nil && over != nil && !errors.Is(err, over) {
				err = fmt.Errorf("%w: %w", over, err)
			}
			if err != nil {
				err = fmt.Errorf("%s of lock %q: %w", b.text, s.name, err)
			}
			return err
		}))
		return reflect.Zero(p.marker)
	}), b.pc)}
}

// work runs the body once. When it has returned nil under a lease that was still held, the
// work is done, whatever becomes of the lease afterwards.
func (b *readyBody) work(ctx context.Context) error {
	var returned error
	done := false
	err := b.callPlain(ctx, &callbacks{body: func(h *lifecycle.Hold, call func() error) {
		returned = call()
		done = returned == nil && h.Held()
	}})
	if !done {
		return join(returned, err)
	}
	if err != nil {
		b.lock.warn("cleanup of the start failed", zap.Error(err))
	}
	return nil
}

func (p asOnStart) gives(*body, *settings) (reflect.Type, string) { return p.marker, "" }

func (asOnStart) forced() bool { return true }

// withinStart returns a context that ends a little earlier than that of the start, of
// which fx says nothing but that it has ended.
func (b *readyBody) withinStart(ctx context.Context) (context.Context, context.CancelFunc) {
	end, limited := ctx.Deadline()
	if !limited {
		return ctx, func() {}
	}
	left := time.Until(end)
	spare := stop.Spare(left)
	why := fmt.Errorf("%w: the start leaves %v for the wait and the work, see fx.StartTimeout",
		context.DeadlineExceeded, (left - spare).Round(time.Millisecond))
	if ttl := b.lock.settings.ttl; ttl >= left-spare {
		hint := fmt.Sprintf("the ttl of %v is not shorter than the start: "+
			"a replica that dies in its work fails the starts of the others, see fxlock.WithTTL", ttl)
		b.lock.warn(hint)
		why = fmt.Errorf("%w; %s", why, hint)
	}
	return context.WithDeadlineCause(ctx, end.Add(-spare), why)
}

// A RunOrLeadOption configures a [Body], an [OnStart] or a [Lead].
type RunOrLeadOption interface {
	RunOption
	LeadOption
}

// After makes a [Lead], a [Body] or an [OnStart] depend on the start job with the marker M:
//
//   - a Lead campaigns once the job is done. Without After a first term may begin before the
//     job, since fx starts what was built first;
//   - what takes the F of a Body starts after the job;
//   - an OnStart runs after the other one.
//
// If the job fails, they don't begin. M must be in the graph. After may be given more than
// once. A function that takes an M has the same effect.
func After[M any]() RunOrLeadOption { return orderOption{"After", reflect.TypeFor[M](), true} }

// NotAfter says that a [Lead] need not wait for the start job with the marker M. [Validate]
// requires After or NotAfter.
func NotAfter[M any]() LeadOption { return orderOption{"NotAfter", reflect.TypeFor[M](), false} }

// orderOption is an order to a job of the start.
type orderOption struct {
	name   string
	marker reflect.Type
	after  bool
}

func (o orderOption) String() string { return fmt.Sprintf("fxlock.%s[%v]()", o.name, o.marker) }

func (o orderOption) applyLock(s *settings) { s.fault(o.String(), misplacedAfter) }

func (o orderOption) applyRun(r *runSettings) {
	if err := checkMarker(o.marker); err != nil {
		r.faults = append(r.faults, faults.Of(o.String(), err))
	}
	r.after = append(r.after, o.marker)
}

func (o orderOption) applyLead(l *leadSettings) {
	switch err := checkMarker(o.marker); {
	case err != nil:
		l.faults = append(l.faults, faults.Of(o.String(), err))
	case o.after:
		l.after = append(l.after, o.marker)
	default:
		l.notAfter = append(l.notAfter, o.marker)
	}
}

// checkMarker checks the marker type of a job.
func checkMarker(m reflect.Type) error {
	if !graph.IsMarker(m) {
		return fmt.Errorf("%w: %v must be a marker type that you define, such as: type Migrated struct{}", lockfx.ErrConfig, m)
	}
	return nil
}

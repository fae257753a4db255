package fxlock

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock/internal/campaign"
	"github.com/lockfx/lockfx/fxlock/internal/faults"
	"github.com/lockfx/lockfx/fxlock/internal/graph"
	"github.com/lockfx/lockfx/internal/lifecycle"
	"github.com/lockfx/lockfx/internal/queue"
)

// Lead makes the application campaign for the lock from its start on, and run fn
// while it leads: until fn returns, or the lease is lost. Then it stands by again.
// Another application takes over as soon as the lock is free.
//
// fn takes dig parameters of any kind, as for [Body], and returns nothing or an
// error. Its context ends when the term does. What fn returns decides what comes next:
//
//   - nil: the term is over. After [TermPause] the application campaigns again, or with
//     [OneTerm] does not campaign again.
//   - nil or the error of its context, after [MaxHold] or [Leadership.StepDown] has ended
//     that context: the term ended normally. After MaxHold the application pauses for a tenth
//     of a second, in which another that the store wakes can take over; after StepDown it
//     pauses for TermPause.
//   - another error, or the lease was lost before fn returned: the term failed. The
//     application stands by again after a pause that grows from about a second to half a
//     minute, and is short again after a term that lasted a ttl.
//
// A failure after fn has returned, of the teardown of its scope or of the release, is logged
// and is in [LeadershipEvent]; the term does not fail by it. A panic of fn ends the
// process, as in any goroutine; the lock is released first.
//
// The application's stop cancels fn, keeps renewing until it has returned, and
// releases, so a successor takes over at once instead of after a ttl. If the time of
// the stop ends first, the lease expires, or is released when fn returns. If a start fails
// because its timeout is over, fx runs no stop hooks, so a campaign that has begun goes on
// until the process ends.
//
// The campaign waits for the lock without a limit, also if the module has a [Wait]. The other
// options of the module hold for each term; an [If] that returns false is evaluated again
// after [TermPause].
//
// A first term may begin before the [OnStart] job of the same application, unless
// [After] says otherwise.
//
// A *[Leadership] is in the graph as `name:"<name>"` and, unless the module is
// [Named], unnamed too. Taking it is optional. A module can have one Lead.
func Lead(fn any, opts ...LeadOption) Option {
	lead := leadSettings{pause: defaultTermPause}
	for i, o := range opts {
		if o == nil {
			lead.faults = append(lead.faults, fmt.Errorf("%w: lead option %d is nil", lockfx.ErrConfig, i+1))
			continue
		}
		o.applyLead(&lead)
	}
	b := plainBody[leadTerm]("Lead", fn, runSettings{after: lead.after}, graph.CallSite())
	b.run.wait.set(queue.Forever)
	b.text = bodyText("Lead", fn, opts)
	b.purpose = asLeader{lead}
	o := b.option(errors.Join(lead.faults...))
	return option{b.text, func(s *settings) {
		if s.leads {
			s.fault(b.text, "a module can have one Lead")
		}
		s.leads = true
		o.applyLock(s)
	}}
}

// leadTerm is the func type of a term.
type leadTerm func(context.Context) error

// A LeadOption configures [Lead]. It prints itself as it is written.
type LeadOption interface {
	fmt.Stringer
	applyLead(*leadSettings)
}

type leadSettings struct {
	pause   time.Duration
	oneTerm bool
	faults  []error

	after, notAfter []reflect.Type
}

type leadOption struct {
	text  string
	apply func(*leadSettings)
}

func (o leadOption) String() string            { return o.text }
func (o leadOption) applyLead(l *leadSettings) { o.apply(l) }

const defaultTermPause = time.Second

// TermPause sets the pause after fn has returned nil, and after [Leadership.StepDown], in
// which others can lead. It must be greater than 0; the default is 1 s.
func TermPause(d time.Duration) LeadOption {
	text := "fxlock.TermPause(" + d.String() + ")"
	return leadOption{text, func(l *leadSettings) {
		if d <= 0 {
			l.faults = append(l.faults, faults.New(text, "must be greater than 0"))
		}
		l.pause = d
	}}
}

// OneTerm ends the campaign when fn has returned nil, until the next start of the
// application. A nil that fn returns after its context has ended does not count: fn was
// interrupted.
func OneTerm() LeadOption {
	return leadOption{"fxlock.OneTerm()", func(l *leadSettings) { l.oneTerm = true }}
}

// asLeader runs the body in a campaign, and provides the Leadership.
type asLeader struct{ leadSettings }

func (p asLeader) provide(b *body, s *settings) []any {
	made := b.fromReady(s, reflect.TypeFor[*Leadership](), func(ready *readyBody, lc fx.Lifecycle) reflect.Value {
		l := &Leadership{ready: ready, pause: p.pause, oneTerm: p.oneTerm}
		lc.Append(l.hook())
		return reflect.ValueOf(l)
	})
	_, tag := p.gives(b, s)
	provided := []any{orderRule(b, s, p.leadSettings), graph.Located(made, b.pc, fx.ResultTags(tag))}
	if !s.named {
		provided = append(provided, graph.Located(graph.PassOn(reflect.TypeFor[*Leadership](), tag), b.pc))
	}
	return provided
}

func (asLeader) gives(_ *body, s *settings) (reflect.Type, string) {
	return reflect.TypeFor[*Leadership](), graph.NameTag(s.name)
}

func (asLeader) forced() bool { return true }

// hook starts a campaign with the application, and stops it.
func (l *Leadership) hook() fx.Hook {
	return fx.Hook{
		OnStart: func(context.Context) error { // its context ends with the start
			l.start()
			return nil
		},
		OnStop: l.stop,
	}
}

// start begins a campaign. An earlier one is still there if fx had no time left to
// stop it; it ends first, so that there is one at a time.
func (l *Leadership) start() {
	lock := l.ready.lock
	self := lockfx.LabelFrom(lock.settings.labelled(context.Background(), l.ready.run.label))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.campaign = campaign.Start(lock.machine.Load().Disposing(), campaign.Config{
		Key: lock.Key(), Self: self, TTL: lock.settings.ttl, Pause: l.pause, OneTerm: l.oneTerm,
		Lead: l.lead, Notify: l.notify, Failed: l.log,
	}, l.campaign)
}

// lead waits for the lock and runs one term.
func (l *Leadership) lead(ctx context.Context, t *campaign.Term) error {
	return l.ready.callPlain(ctx, &callbacks{
		missed:  t.Missed,
		granted: func(h *lifecycle.Hold) { t.Granted(h) },
		body:    func(_ *lifecycle.Hold, call func() error) { t.Run(call) },
	})
}

// stop ends the campaign: it cancels fn and waits until the lock was released, and until
// the subscribers were notified.
func (l *Leadership) stop(ctx context.Context) error {
	ctx = l.ready.lock.stopBegins(ctx)
	c := l.present()
	c.Stop(lockfx.ErrDisposed)
	if !c.Wait(ctx.Done()) {
		return l.fault(l.ready.lock.outlived(ctx, "the term"))
	}
	l.hub.Drain(ctx.Done(), patience)
	return l.fault(l.hub.Blocked(0))
}

// log writes an error that is reported nowhere else.
func (l *Leadership) log(f campaign.Failure) {
	what := "campaign failed"
	var fields []zap.Field
	if f.Led > 0 {
		what, fields = "term failed", append(fields, zap.Duration("led_for", f.Led))
	}
	if f.Pause > 0 {
		fields = append(fields, zap.Duration("standing_by_in", f.Pause))
	}
	if f.Err != nil {
		l.ready.lock.warn(what, append(fields, zap.Error(f.Err))...)
	}
	if f.Cleanup != nil {
		l.ready.lock.warn("cleanup of a term failed", append(fields, zap.Error(f.Cleanup))...)
	}
}

// notify hands on what happens to a campaign.
func (l *Leadership) notify(e campaign.Event) {
	switch e.Change {
	case campaign.Elected:
		l.term.Store(&e.Hold)
	case campaign.TermEnded: // its lease may last: see WithTeardownTimeout
		l.term.Store(nil)
	}
	event := LeadershipEvent{Change: LeadershipChange(e.Change), Token: e.Token, Leader: e.Leader, Err: e.Err, Cleanup: e.Cleanup}
	if e.Change == campaign.LeaderChanged {
		l.hub.NotifyAlso(event)
	} else {
		l.hub.Notify(event)
	}
}

// orderRule says for [Validate] of which markers a Lead says whether it begins after them.
func orderRule(b *body, s *settings, lead leadSettings) any {
	said := slices.Concat(b.run.after, lead.notAfter)
	leaves := b.scope.Leaves()
	if b.condition != nil {
		leaves = append(slices.Clone(leaves), b.condition.Leaves()...)
	}
	for _, leaf := range leaves {
		said = append(said, leaf.Type)
	}
	return graph.OneLead(b.pc, s.name, slices.DeleteFunc(said, func(t reflect.Type) bool { return !graph.IsMarker(t) }))
}

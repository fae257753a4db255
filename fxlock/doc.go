// Package fxlock puts fenced locks into applications built on go.uber.org/fx.
//
//	type Nightly func(context.Context) error
//
//	fx.New(
//		fx.Provide(NewDB, NewScheduler), // NewScheduler takes a Nightly
//		fxlock.Module("nightly",
//			fxlock.StoreFromGraph(),
//			fxlock.Body[Nightly](func(ctx context.Context, fence lockfx.Token, db *DB) error {
//				return db.Rebuild(ctx, fence) // the db refuses a token smaller than one it has seen
//			})),
//	)
//
// A run acquires the lock, builds a scope of its own, calls the body, tears the
// scope down while the token is still valid, and releases:
//
//	acquire ─▶ bind token and holder ─▶ PerRun constructors ─▶ body ─▶ OnStop hooks ─▶ release
//	   │                │                        │                          (reverse)
//	   └── refused      └── fails ───────────────┴──▶ the body never runs; torn down, released
//
// # Ways in, from cheap to rich
//
//   - [Lock.Do] and [DoValue] take a plain function: no reflection.
//   - [Lock.Run] and [RunValue] take a function with dig parameters. Values of the
//     application reach it through [Share].
//   - [Body] puts a func type of your own into the graph. Handlers then need no
//     import of this package, and nothing unused is built.
//   - [PerRun] adds constructors that are built once per run.
//
// # What a run binds
//
// Only what the body and the constructors that it reaches ask for is bound. These
// shadow values of the application that have the same type:
//
//   - context.Context: ends with the caller's, with the loss of the lease and with
//     the stop of the application; context.Cause says which. It carries the token
//     ([lockfx.TokenFrom]).
//   - [lockfx.Token], and the same as `name:"lock:fence"`.
//   - [lockfx.Holder], and the same as `name:"lock:holder"`: poll Held at no cost.
//   - fx.Lifecycle: hooks of this run. Hooks appended to the application's
//     lifecycle while it runs would never be executed.
//   - *[Scope]: resolves more by hand.
//   - *zap.Logger with the key and the fence as fields, if the application has one.
//   - the inputs of a func type given to [Body].
//
// # Several callers
//
// A *Lock is one lock, whoever it was injected into: while one caller runs under it, a
// second one in the same process, say another request, gets a
// [lockfx.NotAcquiredError] whose Self is true, at once. With [Wait] it takes its place
// in a line instead: first come, first served, and only the head of the line talks to
// the store. Who does not wait never overtakes the line. A lock is not reentrant: a body
// that asks for its own lock is refused at once, and Nested is true.
//
// # Not every time
//
// [If] asks whether the work is still wanted, before and under the lock. [MinHold]
// keeps a short job from running once on each host, and [MaxHold] a long one from
// running for ever. [SkipOn] is for
// schedulers that should not report "another replica runs this" as a failure.
//
// # Leading, and jobs of the start
//
// [Lead] makes the application campaign for the lock from its start on, and run a
// function while it leads:
//
//	standing by ──▶ elected ──▶ fn ──▶ term ended ──▶ pause ──▶ standing by ...
//	      └─────────────┴────── stop ──────┴────────────┴──▶ stood down
//
// [OnStart] runs a function under the lock once while the application starts, before
// the start hooks of what depends on it. Constructors have run by then.
//
// # Stopping
//
// fx stops what was built last first. What was built with the lock stops before it;
// a function made by [Body] stops before the values that it uses: it refuses new
// calls, cancels the running body with cause [lockfx.ErrDisposed], and waits for it. The lease
// is renewed until the body has returned and is then released by the goroutine of
// the run: as long as the process lives, even if fx runs out of time and skips the
// hook. What is never built is never stopped: nothing is acquired in constructors.
//
// The first stop hook of a lock, a body or a [Leadership] notifies all locks of the application at
// once; each hook then waits for its own runs, until shortly before the time of the stop
// ends. What has not ended by then is not renewed any more, and the error names it.
//
// fx does not know what a body of [Lock.Do] or [Lock.Run] has captured, and may stop it before the
// lock: [Share] it, which makes the lock depend on it, or end the options of fx.New with
// [Drain], which makes the stop begin with the locks.
//
// An HTTP server whose handlers take a lock stops before it, and its Shutdown waits for
// them: [Drain] ends bodies and waits before; or end the BaseContext of the server in the
// hook.
//
// An application can be started again. Its locks then keep the last token.
package fxlock

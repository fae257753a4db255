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
// A run acquires the lock, builds its scope, calls the body, tears the scope down
// while the token is still valid, and releases the lock:
//
//	acquire ─▶ bind token and holder ─▶ PerRun constructors ─▶ body ─▶ OnStop hooks ─▶ release
//	   │                │                        │                          (reverse)
//	   └── refused      └── fails ───────────────┴──▶ the body never runs; torn down, released
//
// # Ways to run work, from the simplest to the most capable
//
//   - [Lock.Do] and [DoValue] take a plain function, without reflection.
//   - [Lock.Run] and [RunValue] take a function with dig parameters. [Share] makes
//     values of the application available to it.
//   - [Body] puts a func type that you define into the graph. Handlers then need no
//     import of this package, and nothing unused is built.
//   - [PerRun] adds constructors that are called once per run.
//
// # What a run binds
//
// A run binds only what the body, and the constructors that it depends on, take.
// These values shadow values of the application with the same type:
//
//   - context.Context: ends with the caller's, with the loss of the lease and with
//     the stop of the application; context.Cause says which. It carries the token
//     ([lockfx.TokenFrom]).
//   - [lockfx.Token], also as `name:"lock:fence"`.
//   - [lockfx.Holder], also as `name:"lock:holder"`. Held is cheap to poll.
//   - fx.Lifecycle: hooks of this run. Hooks appended to the application's
//     lifecycle while it runs would never be executed.
//   - *[Scope]: resolves more values by hand.
//   - *zap.Logger with the key and the fence as fields, if the application has one.
//   - the inputs of a func type given to [Body].
//
// # Several callers
//
// All callers of a *Lock share one lock. While one caller runs under it, a second caller
// in the same process, such as another request, gets a [lockfx.NotAcquiredError] at once,
// whose Self is true. With [Wait] it queues instead, first come, first served; only the
// head of the queue talks to the store. A caller that does not wait cannot jump the queue.
// A lock is not reentrant: a body that runs its own lock is refused at once, with Nested
// true.
//
// # Conditions and limits
//
// [If] evaluates whether the work is still wanted, before and under the lock. [MinHold]
// keeps a short job from running once on each host; [MaxHold] limits a long one.
// [SkipOn] is for schedulers that should not report "another replica runs this" as a
// failure.
//
// # Leading, and start jobs
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
// fx stops components in reverse order of construction, so what was built with the lock
// stops before it, and a function made by [Body] stops before the values that it uses.
// It refuses new calls, cancels the running body with cause [lockfx.ErrDisposed], and
// waits for it. The lease is renewed until the body has returned. The goroutine of the
// run then releases it, even if fx runs out of time and skips the hook, as long as the
// process lives. Constructors acquire nothing, so an application that fails to build
// holds no lock.
//
// An HTTP server whose handlers take a lock stops before the lock, and its Shutdown waits
// for them. End the BaseContext of the server first, so that bodies and waits are
// cancelled.
//
// An application can be started again. Its locks then keep the last token.
package fxlock

// Package plan works out what a body needs: which parameters the run binds, which come
// from constructors of the run, and which the application must give.
//
//	Planner             the options of a lock that say what a run can bind
//	   │ Body, Condition    once for each function, when the option is made
//	   ▼
//	Body                the plan: its leaves are what the application must give
//	   │ Bind               once, with the values of the application
//	   ▼
//	Source              what runs start from
//	   │ Open               for each run, with its token, holder and context
//	   ▼
//	runscope.Scope      the child scope of one run
//
// A Planner is plain data and knows no lock. Nothing is called before a Source is opened.
//
// What goes wrong:
//
//   - a function, or what it takes, is nothing that dig accepts: Body and Condition say so;
//   - constructors of the run contradict each other or the run: Check says so, once, and
//     the bodies are planned without them;
//   - nothing gives a parameter: the error has a hint that names the option that would;
//   - a condition takes what only a run binds: Condition refuses it.
package plan

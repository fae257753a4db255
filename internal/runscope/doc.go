// Package runscope gives every run under a lock a dig scope of its own. It is
// the only room that sees dig.
//
// What a body may ask for is known before any run: its parameters, what the run
// itself binds, and the constructors that are built once per run. [Compile]
// flattens all of these the way dig does, works out what is reached, and tries
// the result dry. A [Plan] that compiled can be opened for each run without
// surprises:
//
//	 Spec ──Compile──▶ Plan ──Bind──▶ Source ──Open──▶ Scope ──Args──▶ call the body
//	(once)            In, Leaves     (once per        (for each run)   ──Resolve──▶ by hand
//	                                  application)                     ──Close
//
//	 ┌ dig.New ───────────────────────────────────┐
//	 │ mirror: one constructor that gives the     │  values of the application: the
//	 │         plan's leaves and nothing else     │  leaves of the plan
//	 │ ┌ Scope("run") ──────────────────────────┐ │
//	 │ │ one constructor for the run's values   │ │  shadow the application's values
//	 │ │ the reached per-run constructors       │ │  of the same key
//	 │ └────────────────────────────────────────┘ │
//	 └────────────────────────────────────────────┘
//
// Both containers are made for one run and are garbage after it. A child scope of
// a container that lives on would never be freed: dig keeps every child and an
// entry for it in every node of its parent.
//
// A value group is the application's values and those of the per-run
// constructors. dig shuffles groups, so their order means nothing.
package runscope

// Package campaign is the loop of a leader. It knows neither fx nor dependency injection:
// a term is a function, and another function is notified of what happens.
//
//	standing by ──▶ elected ──▶ function ──▶ term ended ──▶ pause ──▶ standing by ...
//	      │            └─ lost ─────┘             │            │
//	      └─────────────── the stop, or a disposal ────────────┴──▶ stood down
//
// A term is judged by what its function returned, and by whether its lease was lost
// before. What comes after that, the teardown and the release, is reported and judges
// nothing:
//
//	the function returned nil by itself      a good term; the only one, with OneTerm
//	its context had ended by MaxHold         an ordinary end: go on, after a moment
//	... by StepDown                          an ordinary end: pause
//	... by the stop                          stand down
//	the lease was lost, or it failed         back off
//	the function never began                 back off, or pause if a condition said no
//	the function ended its goroutine         back off
//	the function does not return             Live says so, and StepDown and the stop wait
//	a subscriber does not return             nothing here waits for it
package campaign

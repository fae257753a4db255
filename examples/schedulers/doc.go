// Package schedulers shows how schedulers run their jobs under a lock. It is an
// example: take what you need.
//
//   - A job that is a func type made by [fxlock.Body] is the first choice, for any
//     scheduler: it has its fencing token, its context ends with the lease, and
//     [fxlock.SkipOn] makes contention no error. [NewCron] does that for
//     github.com/robfig/cron; gocron takes such a func as a task as it is.
//   - [Locker] and [Elector] are for applications that have jobs of gocron already: it
//     asks them before each run of a job, which then knows nothing of its lease.
package schedulers

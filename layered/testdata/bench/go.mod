module github.com/lockfx/lockfx/layered/bench

go 1.26.0

require (
	github.com/gofrs/flock v0.13.2
	github.com/lockfx/lockfx v0.1.0
	github.com/moby/locker v1.0.1
)

require golang.org/x/sys v0.49.0 // indirect

replace github.com/lockfx/lockfx => ../../..

module github.com/lockfx/lockfx/integration

go 1.25.0

require github.com/lockfx/lockfx v0.1.0

replace (
	github.com/lockfx/lockfx => ../
	github.com/lockfx/lockfx/redisstore => ../redisstore
)

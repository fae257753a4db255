module github.com/lockfx/lockfx/redisstore

go 1.25.0

replace github.com/lockfx/lockfx => ../

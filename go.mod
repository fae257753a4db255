module github.com/lockfx/lockfx

go 1.25.0

module github.com/lockfx/lockfx/examples/schedulers

go 1.25.0

require (
	github.com/go-co-op/gocron/v2 v2.21.2
	github.com/lockfx/lockfx v0.1.0
	github.com/robfig/cron/v3 v3.0.1
	go.uber.org/fx v1.24.0
	go.uber.org/goleak v1.3.0
	go.uber.org/zap v1.28.0
)

require (
	github.com/agnivade/levenshtein v1.2.2 // indirect
	github.com/go-viper/mapstructure/v2 v2.5.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/jonboulle/clockwork v0.5.0 // indirect
	go.uber.org/dig v1.19.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	golang.org/x/sync v0.20.0 // indirect
	golang.org/x/sys v0.40.0 // indirect
)

replace github.com/lockfx/lockfx => ../..

module github.com/lockfx/lockfx/examples/service

go 1.26.0

replace (
	github.com/lockfx/lockfx => ../..
	github.com/lockfx/lockfx/etcdstore => ../../etcdstore
	github.com/lockfx/lockfx/integration => ../../integration
	github.com/lockfx/lockfx/pgstore => ../../pgstore
	github.com/lockfx/lockfx/redisstore => ../../redisstore
)

require (
	github.com/jackc/pgx/v5 v5.12.0
	github.com/lockfx/lockfx v0.1.0
	github.com/lockfx/lockfx/integration v0.0.0-00010101000000-000000000000
	github.com/lockfx/lockfx/pgstore v0.1.0
	go.uber.org/fx v1.24.0
	go.uber.org/goleak v1.3.0
	go.uber.org/zap v1.28.0
)

require (
	github.com/agnivade/levenshtein v1.2.2 // indirect
	github.com/go-viper/mapstructure/v2 v2.5.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	go.uber.org/dig v1.19.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

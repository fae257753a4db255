module github.com/lockfx/lockfx

go 1.25.0

require (
	github.com/agnivade/levenshtein v1.2.2
	github.com/fsnotify/fsnotify v1.9.0
	github.com/go-viper/mapstructure/v2 v2.5.0
	go.uber.org/dig v1.19.0
	go.uber.org/fx v1.24.0
	go.uber.org/goleak v1.3.0
	go.uber.org/zap v1.28.0
	golang.org/x/sync v0.20.0
	golang.org/x/sys v0.40.0
)

require go.uber.org/multierr v1.11.0 // indirect

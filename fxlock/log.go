package fxlock

import (
	"fmt"
	"os"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/lockfx/lockfx"
)

// forLines returns a logger for lines that say all themselves: where in this package one
// is written, and the stack there, say nothing more.
func forLines(logger *zap.Logger) *zap.Logger {
	return logger.Named("fxlock").WithOptions(zap.WithCaller(false), zap.AddStacktrace(zapcore.FatalLevel))
}

// logEvents returns an observer that writes one line for each event.
func logEvents(logger *zap.Logger) func(lockfx.Event) {
	logger = forLines(logger)
	return func(e lockfx.Event) {
		line := logger.Check(levelOf(e), e.Kind.String())
		if line == nil {
			return
		}
		fields := []zap.Field{zap.String("lock", e.Lock), keyField(e.Key)}
		if e.Token != 0 {
			fields = append(fields, fenceField(e.Token))
		}
		if e.Reason != lockfx.ReasonNone {
			fields = append(fields, zap.Stringer("reason", e.Reason))
		}
		if e.Kind == lockfx.EventLost || e.Kind == lockfx.EventReleased {
			fields = append(fields, zap.Duration("held_for", e.HeldFor))
		}
		if e.HeldBy != "" {
			fields = append(fields, zap.String("held_by", e.HeldBy))
		}
		if e.RetryAfter > 0 {
			fields = append(fields, zap.Duration("retry_after", e.RetryAfter))
		}
		if e.Note != "" {
			fields = append(fields, zap.String("gate", e.Note))
		}
		if e.Dropped > 0 {
			fields = append(fields, zap.Int("dropped", e.Dropped))
		}
		if !e.SilentSince.IsZero() {
			fields = append(fields, zap.Time("silent_since", e.SilentSince), zap.Duration("silent_for", e.At.Sub(e.SilentSince)))
		}
		if e.Err != nil {
			fields = append(fields, zap.Error(e.Err))
		}
		line.Write(fields...)
	}
}

func levelOf(e lockfx.Event) zapcore.Level {
	switch {
	case e.Kind == lockfx.EventCallbackPanicked:
		return zapcore.ErrorLevel
	case e.Kind == lockfx.EventSkipped:
		return zapcore.InfoLevel
	case e.Kind == lockfx.EventLost, e.Kind == lockfx.EventsDropped, e.Err != nil:
		return zapcore.WarnLevel
	}
	return zapcore.InfoLevel
}

// warn writes a line about the lock, if there is a logger.
func (l *Lock) warn(line string, fields ...zap.Field) {
	if l.logger != nil {
		forLines(l.logger).Warn(line, append(fields, zap.String("lock", l.settings.name), keyField(l.Key()))...)
	}
}

// warnOfMemory says once that nobody chose a store, on stderr when there is no
// logger: a lock that silently excludes nobody else is worse than none.
func (l *Lock) warnOfMemory() {
	const warning = "no store was chosen: other processes are not excluded"
	const hint = "add fxlock.WithStore, StoreFrom or StoreFromGraph; WithStore(fxlock.NewMemoryStore()) says that this is meant"
	if l.logger == nil {
		fmt.Fprintf(os.Stderr, "fxlock: lock %q: %s; %s\n", l.settings.name, warning, hint)
		return
	}
	forLines(l.logger).Warn(warning, zap.String("lock", l.settings.name),
		keyField(l.settings.key), zap.String("hint", hint))
}

// The fields of a run, in log lines of ours and in the logger that it binds.

func keyField(key string) zap.Field { return zap.String("key", key) }

func fenceField(token lockfx.Token) zap.Field { return zap.Int64("fence", int64(token)) }

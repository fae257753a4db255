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
		if e.KeptFor > 0 {
			fields = append(fields, zap.Duration("kept_for", e.KeptFor))
		}
		if e.Gate != "" {
			fields = append(fields, zap.String("gate", e.Gate))
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

// The fields of a run, in log lines of ours and in the logger that it binds.

func keyField(key string) zap.Field { return zap.String("key", key) }

func fenceField(token lockfx.Token) zap.Field { return zap.Int64("fence", int64(token)) }

// WithOnLost calls onLost once for each lease that is lost, after the context of the run
// has been cancelled, with no mutex held. It is called after the observers ([Observer]), and
// may wait for the run, or call [Lock.Dispose]: the run does not wait for it. A panic of it
// is recovered and reported as [lockfx.EventCallbackPanicked].
func WithOnLost(onLost func(lockfx.Reason)) Option {
	text := "fxlock.WithOnLost(" + orNil(onLost, "func") + ")"
	return option{text, func(s *settings) {
		if onLost == nil {
			s.fault(text, "must not be nil")
		}
		s.onLost = onLost
	}}
}

// Observer calls observe with every event of the lock, in order, one at a time, with no
// mutex held: everything that is logged, for metrics and traces. It may be given more than
// once. A panic of it is recovered and reported as [lockfx.EventCallbackPanicked].
//
// observe should return soon. A body begins only when observe has received the acquisition,
// so observe must not wait for a run, nor call [Lock.Dispose] during one. At most 1,024
// events wait for it, and losses up to twice as many: more are dropped, and
// [lockfx.EventsDropped] says how many.
func Observer(observe func(lockfx.Event)) Option {
	text := "fxlock.Observer(" + orNil(observe, "func") + ")"
	return option{text, func(s *settings) {
		if observe == nil {
			s.fault(text, "must not be nil")
			return
		}
		s.observers = append(s.observers, observe)
	}}
}

// WithLogger sets the logger instead of the application's, or for [New].
func WithLogger(logger *zap.Logger) Option {
	text := "fxlock.WithLogger(" + orNil(logger, "*zap.Logger") + ")"
	return option{text, func(s *settings) {
		if logger == nil {
			s.fault(text, "must not be nil; zap.NewNop() is silent")
		}
		s.logger = logger
	}}
}

// warnOfMemory says that nothing chose a store, on stderr when there is no logger: a lock
// that silently excludes no other process is worse than none.
func warnOfMemory(logger *zap.Logger, lock, key string) {
	const warning = "no store was chosen: other processes are not excluded"
	const hint = "add fxlock.WithStore, StoreFrom or StoreFromGraph; use WithStore(fxlock.NewMemoryStore()) if this is intended"
	if logger == nil {
		fmt.Fprintf(os.Stderr, "fxlock: lock %q: %s; %s\n", lock, warning, hint)
		return
	}
	forLines(logger).Warn(warning, zap.String("lock", lock), keyField(key), zap.String("hint", hint))
}

package main

import (
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogger returns the logger of the program, which is silent unless verbose.
func newLogger(verbose bool, w io.Writer) *zap.Logger {
	if !verbose {
		return zap.NewNop()
	}
	encoder := zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), zapcore.DebugLevel))
}

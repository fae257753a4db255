package nightly

import (
	"context"

	"github.com/lockfx/lockfx"
)

// Sink is where reports go. It refuses a token that is smaller than one it has
// seen, with an error that matches [lockfx.ErrStaleToken].
type Sink interface {
	Write(ctx context.Context, token lockfx.Token, body []byte) error
}

// Output is the sink for one run: all it writes carries that run's token.
type Output struct {
	token lockfx.Token
	sink  Sink
}

// NewOutput returns the output of the run that token belongs to.
func NewOutput(token lockfx.Token, sink Sink) *Output { return &Output{token, sink} }

// Write replaces the report by body.
func (o *Output) Write(ctx context.Context, body []byte) error {
	return o.sink.Write(ctx, o.token, body)
}

package schedulers

import (
	"context"
	"errors"

	"github.com/go-co-op/gocron/v2"

	"github.com/lockfx/lockfx/fxlock"
)

// Elector makes all jobs of a scheduler run on the leader alone: see [fxlock.Lead],
// whose function may be [Reign].
type Elector struct{ Leadership *fxlock.Leadership }

var (
	_ gocron.Elector = Elector{}

	errNotLeader = errors.New("another replica leads, or none")
)

// IsLeader returns nil if this application leads, by its local deadline too.
func (e Elector) IsLeader(context.Context) error {
	if !e.Leadership.IsLeader() {
		return errNotLeader
	}
	return nil
}

// Reign is a term in which the scheduler does the work.
func Reign(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

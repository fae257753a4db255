package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/lockfx/lockfx"
)

// Whatever a store says of an outage, the message names the call, the key and the
// failure of the store, and none of them twice.
func TestAnOutageIsSaidOnce(t *testing.T) {
	said := func(op string) error { return fmt.Errorf("%s %q: %w: %w", op, key, lockfx.ErrStore, errBoom) }
	for _, outage := range []struct {
		from error
		want string
	}{
		{errBoom, `acquire "nightly": store failed: boom`},
		{said("acquire"), `acquire "nightly": store failed: boom`},
		{said("connect for"), `acquire "nightly": store failed: connect for "nightly": store failed: boom`},
	} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.store.acquires(func(context.Context, lockfx.Token) (lockfx.Grant, error) { return lockfx.Grant{}, outage.from })
			_, err := r.Acquire(background)
			if !errors.Is(err, lockfx.ErrStore) || !errors.Is(err, errBoom) || err.Error() != outage.want {
				t.Errorf("%v\nwant %s", err, outage.want)
			}
		})
	}
}

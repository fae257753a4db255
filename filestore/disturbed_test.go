package filestore_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/filestore"
)

// disturbed makes every call on a store that got into trouble, and returns an error unless
// each failed with want, named the file, and granted nothing.
func disturbed(s *filestore.Store, token lockfx.Token, want error) error {
	var faults []error
	note := func(op string, yes bool, err error) {
		if yes || !errors.Is(err, want) || !strings.HasPrefix(err.Error(), strings.Fields(op)[0]+` "`) {
			faults = append(faults, fmt.Errorf("%s: %v, %w; want an error with %w", op, yes, err, want))
		}
	}
	g, err := s.Acquire(ctx, "free", time.Hour)
	note("acquire a free key", g != (lockfx.Grant{}), err)
	ok, err := s.Renew(ctx, "held", token, 2*time.Hour)
	note("renew", ok, err)
	ok, err = s.Release(ctx, "held", token)
	note("release", ok, err)
	ok, err = s.Break(ctx, "held")
	note("break", ok, err)
	return errors.Join(faults...)
}

// acquired returns the token of a new lease.
func acquired(s *filestore.Store, key string) (lockfx.Token, error) {
	g, err := s.Acquire(ctx, key, time.Hour)
	return g.Token, mustBeTrue(g.OK, err)
}

// untouched returns an error unless the lease on "held" is as it was, and the store works
// again.
func untouched(s *filestore.Store, token lockfx.Token) error {
	l, err := s.Inspect(ctx, "held")
	if err != nil || l.Token != token || l.TimeLeft > time.Hour {
		return fmt.Errorf("inspect: %+v, %w; want token %v as it was", l, err, token)
	}
	next, err := acquired(s, "free")
	if err != nil || next <= token {
		return fmt.Errorf("token %v after %v: %w", next, token, err)
	}
	return mustBeTrue(s.Release(ctx, "held", token))
}

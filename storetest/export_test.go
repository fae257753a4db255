package storetest

import "context"

// Broken tells how a store breaks p, or nil.
func (p Promise) Broken(ctx context.Context, newHarness Factory) error {
	_, err := p.run(ctx, newHarness)
	return err
}

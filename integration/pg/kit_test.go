package pg_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lockfx/lockfx/storetest"
)

// The store gives its promises whatever the databases have as their default, and with
// one connection too.
func TestKit(t *testing.T) {
	for level, tune := range map[string]func(*pgxpool.Config){
		"read committed": nil, "repeatable read": poolOfOne, "serializable": nil,
	} {
		t.Run(level, func(t *testing.T) {
			t.Parallel() // it mostly waits
			s := postgres(t, "-cdefault_transaction_isolation="+level)
			storetest.Run(t, func() (*storetest.Harness, error) {
				e, err := enter(s, s.Addr(), tune)
				if err != nil {
					return nil, err
				}
				return e.harness()
			})
		})
	}
}

package pg_test

import (
	"testing"

	"github.com/lockfx/lockfx/storetest"
)

func TestKit(t *testing.T) {
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel() // it mostly waits
			s := postgres(t, "-cdefault_transaction_isolation="+level)
			storetest.Run(t, func() (*storetest.Harness, error) {
				e, err := enter(s, s.Addr(), nil)
				if err != nil {
					return nil, err
				}
				return e.harness()
			})
		})
	}
}

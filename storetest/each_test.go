package storetest

import (
	"errors"
	"testing"
)

// What one of many callers meets is not hidden by another one that was too slow.
func TestASlowCallerHidesNoFault(t *testing.T) {
	fault := errors.New("two at once")
	defer func() {
		if b, ok := recover().(broken); !ok || !errors.Is(b.error, fault) {
			t.Errorf("found %v, want %v", b, fault)
		}
	}()
	new(env).each(3, func(i int) {
		if i == 1 {
			panic(broken{fault})
		}
		panic(broken{errTooSlow})
	})
}

// Package waiting_test shows what waiting and leading cost over real servers, and how
// soon others take over.
package queue_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/lockfx/lockfx/integration/etcdserver"
)

func TestMain(m *testing.M) {
	etcdserver.Member()
	child()
	goleak.VerifyTestMain(withServers{m})
}

// withServers stops the servers that the tests share.
type withServers struct{ tests *testing.M }

func (w withServers) Run() int {
	code := w.tests.Run()
	for _, e := range engines {
		if e.stop != nil {
			e.stop()
		}
	}
	return code
}

package etcd_test

import (
	"context"
	"encoding/json"
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/etcdstore"
	"github.com/lockfx/lockfx/integration/crash"
	"github.com/lockfx/lockfx/integration/etcdserver"
)

func TestMain(m *testing.M) {
	etcdserver.Member()
	etcdctl()
	crash.Child(openPlace)
	sideBySide("24")
	goleak.VerifyTestMain(m)
}

// sideBySide lets n parallel tests run at once, unless the command line says
// otherwise: leases take seconds to end, and waiting for that costs nothing.
func sideBySide(n string) {
	const parallel = "test.parallel"
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == parallel })
	if !said {
		if err := flag.Set(parallel, n); err != nil {
			panic(err)
		}
	}
}

// place says where a store is, so that another process can open it.
type place struct {
	Addrs  []string
	Prefix string
}

func (p place) String() string {
	text, err := json.Marshal(p)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func openPlace(_ context.Context, text string) (lockfx.Store, error) {
	var p place
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, err
	}
	client, err := etcdserver.Client(p.Addrs...)
	if err != nil {
		return nil, err
	}
	return etcdstore.New(client, etcdstore.WithPrefix(p.Prefix))
}

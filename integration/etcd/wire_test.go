package etcd_test

import (
	"context"
	"path"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/lockfx/lockfx/etcdstore"
)

// wire sees the requests of a client, each attempt of them, as they leave.
type wire struct {
	mu    sync.Mutex // guards what follows
	count map[string]int
	// hook, if not nil, stands for the sending of a request: send sends it.
	hook func(ctx context.Context, method string, send func(context.Context) error) error
}

func (w *wire) seen(method string) func(context.Context, string, func(context.Context) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.count == nil {
		w.count = map[string]int{}
	}
	w.count[path.Base(method)]++
	return w.hook
}

// counted returns how many requests of each kind do sends.
func (w *wire) counted(do func()) map[string]int {
	w.mu.Lock()
	w.count = nil
	w.mu.Unlock()
	do()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

func (w *wire) through(hook func(ctx context.Context, method string, send func(context.Context) error) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hook = hook
}

// spoken is a stream whose requests are seen.
type spoken struct {
	grpc.ClientStream
	seen func()
}

func (s *spoken) SendMsg(m any) error {
	s.seen()
	return s.ClientStream.SendMsg(m)
}

// dial returns a client whose requests w sees.
func (w *wire) dial(c clientv3.Config) (*clientv3.Client, error) {
	c.Logger, c.DialOptions = zap.NewNop(), []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			send := func(ctx context.Context) error { return invoke(ctx, method, req, reply, cc, opts...) }
			if hook := w.seen(method); hook != nil {
				return hook(ctx, path.Base(method), send)
			}
			return send(ctx)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			stream, err := open(ctx, desc, cc, method, opts...)
			if path.Base(method) == "LeaseKeepAlive" { // one stream, many requests
				return &spoken{stream, func() { w.seen(method) }}, err
			}
			w.seen(method)
			return stream, err
		}),
	}
	return clientv3.New(c)
}

// wired opens a store whose requests are seen.
func (e *engine) wired(t testing.TB) (*etcdstore.Store, *wire) {
	t.Helper()
	w := &wire{}
	var addrs []string
	for _, p := range e.proxies {
		addrs = append(addrs, p.Addr())
	}
	client, err := w.dial(clientv3.Config{Endpoints: addrs})
	if err != nil {
		t.Fatal(err)
	}
	e.opened = append(e.opened, func() { _ = client.Close() })
	store, err := e.over(client)
	if err != nil {
		t.Fatal(err)
	}
	return store, w
}

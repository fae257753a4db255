package etcd_test

import (
	"context"
	"errors"
	"path"
	"reflect"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
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
	next *held // of the next request, until one is kept back
}

// held is a request that is kept back.
type held struct {
	method string        // what it asks for; any request if empty
	kept   chan struct{} // closed when it is kept back
	gate   chan struct{} // closed when it may pass
	done   chan struct{} // closed when etcd has answered it
}

// hold keeps back the next request of a kind, or of any, until deliver is called: it then arrives late, though
// its caller may have given up. deliver returns when etcd has answered it; if nothing was
// kept back, at once. kept is closed when one is.
func (w *wire) hold(method string) (kept <-chan struct{}, deliver func()) {
	h := &held{method, make(chan struct{}), make(chan struct{}), make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next = h
	return h.kept, sync.OnceFunc(func() {
		close(h.gate)
		w.mu.Lock()
		idle := w.next == h
		if idle {
			w.next = nil
		}
		w.mu.Unlock()
		if !idle {
			<-h.done
		}
	})
}

// keep sends a request when it may pass, and returns early if its caller gives up.
func (h *held) keep(ctx context.Context, send func(context.Context) error) error {
	result := make(chan error, 1)
	go func() {
		defer close(h.done)
		<-h.gate
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		result <- send(ctx)
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *wire) seen(method string) (func(context.Context, string, func(context.Context) error) error, *held) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.count == nil {
		w.count = map[string]int{}
	}
	w.count[path.Base(method)]++
	h := w.next
	if h == nil || h.method != "" && h.method != path.Base(method) {
		return w.hook, nil
	}
	w.next = nil
	close(h.kept)
	return w.hook, h
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

// spoken is a stream whose requests are seen. One that is kept back arrives over a stream
// of its own, since this one may be gone by then.
type spoken struct {
	grpc.ClientStream
	seen func() *held
	open func(context.Context) (grpc.ClientStream, error)
}

func (s *spoken) SendMsg(m any) error {
	h := s.seen()
	if h == nil {
		return s.ClientStream.SendMsg(m)
	}
	go func() {
		_ = h.keep(context.WithoutCancel(s.Context()), func(ctx context.Context) error {
			late, err := s.open(ctx)
			if err == nil {
				err = errors.Join(late.SendMsg(m), late.CloseSend(), late.RecvMsg(&pb.LeaseKeepAliveResponse{}))
			}
			return err
		})
	}()
	return nil
}

// dial returns a client whose requests w sees.
func (w *wire) dial(c clientv3.Config) (*clientv3.Client, error) {
	c.Logger, c.DialOptions = zap.NewNop(), []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			send := func(ctx context.Context) error { return invoke(ctx, method, req, reply, cc, opts...) }
			hook, kept := w.seen(method)
			switch {
			case kept != nil:
				unheard := reflect.New(reflect.TypeOf(reply).Elem()).Interface()
				return kept.keep(ctx, func(ctx context.Context) error { return invoke(ctx, method, req, unheard, cc, opts...) })
			case hook != nil:
				return hook(ctx, path.Base(method), send)
			}
			return send(ctx)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			stream, err := open(ctx, desc, cc, method, opts...)
			if path.Base(method) == "LeaseKeepAlive" { // one stream, many requests
				again := func(ctx context.Context) (grpc.ClientStream, error) { return open(ctx, desc, cc, method, opts...) }
				return &spoken{stream, func() *held { _, kept := w.seen(method); return kept }, again}, err
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
	store, w, err := e.openWired()
	if err != nil {
		t.Fatal(err)
	}
	return store, w
}

func (e *engine) openWired() (*etcdstore.Store, *wire, error) {
	w := &wire{}
	var addrs []string
	for _, p := range e.proxies {
		addrs = append(addrs, p.Addr())
	}
	client, err := w.dial(clientv3.Config{Endpoints: addrs})
	if err != nil {
		return nil, nil, err
	}
	e.opened = append(e.opened, func() { _ = client.Close() })
	store, err := e.over(client)
	return store, w, err
}

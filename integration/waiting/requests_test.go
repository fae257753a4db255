package queue_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
)

// requests counts what a client sends: each write to a connection, so a handshake and
// a farewell as well, or each message of gRPC.
type requests struct{ n atomic.Int64 }

func (r *requests) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &countedConn{conn, r}, nil
}

type countedConn struct {
	net.Conn
	sent *requests
}

func (c *countedConn) Write(b []byte) (int, error) {
	c.sent.n.Add(1)
	return c.Conn.Write(b)
}

func (r *requests) interceptors() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			r.n.Add(1)
			return invoke(ctx, method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			s, err := open(ctx, desc, cc, method, opts...)
			return &countedStream{s, r}, err
		}),
	}
}

type countedStream struct {
	grpc.ClientStream
	sent *requests
}

func (s *countedStream) SendMsg(m any) error {
	s.sent.n.Add(1)
	return s.ClientStream.SendMsg(m)
}

// The count misses nothing: neither a request, nor the beginning of a watch.
func TestWhatIsSentIsCounted(t *testing.T) {
	overEach(t, func(t *testing.T, e *engine) {
		const pairs = 20
		p, key := e.opened(t), t.Name()
		for range pairs { // with the handshake, and what is sent once for a connection
			free(t, p, key, take(t, p, key, time.Minute))
		}
		before := p.sent.n.Load()
		for range pairs {
			free(t, p, key, take(t, p, key, time.Minute))
		}
		// Now and then pgstore sends a statement that its connection does not know yet.
		if n, least := p.sent.n.Load()-before, pairs*e.pair; n < least || n > least+2 {
			t.Errorf("%d requests were counted in %d pairs; want %d", n, pairs, least)
		}
		before = p.sent.n.Load()
		_, stop, err := p.Watch(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		stop()
		if n := p.sent.n.Load() - before; n == 0 {
			t.Error("the beginning of a watch was not counted")
		}
	})
}

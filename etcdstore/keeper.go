package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockfx/lockfx/storekit"
)

const (
	// idleAfter is how long a line without requests stays open.
	idleAfter = time.Minute
	// unanswered is how many requests may be on their way over a line.
	unanswered = 256
)

// keeper asks etcd to keep leases alive, over one stream. A stream for each request
// would have to be opened each time, and where a password is needed that takes etcd
// longer than all the rest.
type keeper struct {
	open  func(ctx context.Context) (pb.Lease_LeaseKeepAliveClient, error)
	stale func(error) error // of a stream: an error that passes if the next one may do better
	tasks *storekit.Tasks

	mu      sync.Mutex // guards what follows
	current *line
}

// line is a stream. Its answers come in the order of the requests.
type line struct {
	cancel   context.CancelFunc
	requests chan request
	sent     chan request // and not answered yet
	ended    chan struct{}
	err      error // why; set before ended is closed
}

type request struct {
	id     int64
	answer chan reply // of capacity 1
}

type reply struct {
	ttl int64
	err error
}

var errOrder = errors.New("an answer to another request")

// keep returns the ttl of a lease, in seconds, after it was kept alive; 0 if there is
// no such lease.
func (k *keeper) keep(ctx context.Context, id clientv3.LeaseID) (int64, error) {
	l, begin := k.line(), time.Now()
	r := request{int64(id), make(chan reply, 1)}
	select {
	case l.requests <- r:
	case <-l.ended:
		return 0, l.err
	case <-ctx.Done():
		k.doubt(ctx, l, begin)
		return 0, ctx.Err()
	}
	select {
	case a := <-r.answer:
		return a.ttl, a.err
	case <-l.ended:
		select {
		case a := <-r.answer: // it came just before
			return a.ttl, a.err
		default:
			return 0, l.err
		}
	case <-ctx.Done():
		k.doubt(ctx, l, begin)
		return 0, ctx.Err()
	}
}

// doubt drops a line that did not answer for as long as ctx lasted: the member may be
// stuck, or the connection dead, and the next line leads to another. A ctx that was about
// to end anyway says nothing of the line.
func (k *keeper) doubt(ctx context.Context, l *line, begin time.Time) {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && time.Since(begin) >= shortestAttempt {
		k.drop(l)
	}
}

// line returns the present line, or starts one.
func (k *keeper) line() *line {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current != nil {
		return k.current
	}
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(context.Background()))
	l := &line{
		cancel:   cancel,
		requests: make(chan request), sent: make(chan request, unanswered),
		ended: make(chan struct{}),
	}
	k.current = l
	k.tasks.Go(func() {
		l.err = k.serve(ctx, l)
		k.drop(l)
		close(l.ended)
	})
	return l
}

// drop ends a line, and those who wait for it are told.
func (k *keeper) drop(l *line) {
	l.cancel()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current == l {
		k.current = nil
	}
}

func (k *keeper) close() {
	k.mu.Lock()
	l := k.current
	k.mu.Unlock()
	if l != nil {
		k.drop(l)
	}
}

func (k *keeper) serve(ctx context.Context, l *line) error {
	opening := time.AfterFunc(patience, l.cancel)
	stream, err := k.open(ctx)
	opening.Stop()
	if err != nil {
		return err
	}
	var sender sync.WaitGroup
	defer sender.Wait()
	defer l.cancel()
	sender.Go(func() { l.send(ctx, stream) })
	for {
		answer, err := stream.Recv()
		select {
		case r := <-l.sent:
			if err == nil && r.id != answer.ID {
				err = errOrder
			}
			r.answer <- reply{answer.GetTTL(), k.stale(err)} // etcd ends the stream if it can't do one request
		default:
		}
		if err != nil {
			return fmt.Errorf("the stream ended: %v", err) //nolint:errorlint // the reason is that of another request
		}
	}
}

// send sends requests until the line ends or is idle for too long.
func (l *line) send(ctx context.Context, stream pb.Lease_LeaseKeepAliveClient) {
	defer l.cancel() // it ends the receiver too
	idle := time.NewTimer(idleAfter)
	defer idle.Stop()
	for {
		select {
		case r := <-l.requests:
			select {
			case l.sent <- r:
			case <-ctx.Done():
				return
			}
			if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: r.id}); err != nil {
				return // the receiver learns why
			}
			idle.Reset(idleAfter)
		case <-idle.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

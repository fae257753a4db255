package etcdstore

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockfx/lockfx/storekit"
)

// leader answers a stream: it keeps every lease alive for as many seconds as its id.
type leader struct {
	pb.Lease_LeaseKeepAliveClient // nil: what is not overridden is not used

	ctx     context.Context
	asked   chan int64
	answer  func(id int64) (*pb.LeaseKeepAliveResponse, error)
	sending sync.Mutex // held while a request is sent
}

func (l *leader) Send(r *pb.LeaseKeepAliveRequest) error {
	if !l.sending.TryLock() {
		panic("two requests are sent at once")
	}
	defer l.sending.Unlock()
	l.asked <- r.ID
	return nil
}

func (l *leader) Recv() (*pb.LeaseKeepAliveResponse, error) {
	select {
	case id := <-l.asked:
		return l.answer(id)
	case <-l.ctx.Done():
		return nil, l.ctx.Err()
	}
}

func alive(id int64) (*pb.LeaseKeepAliveResponse, error) {
	return &pb.LeaseKeepAliveResponse{ID: id, TTL: id}, nil
}

// keeping returns a keeper whose streams give one answer after the other, and then
// the last for ever, and how many streams there were.
func keeping(t *testing.T, answers ...func(int64) (*pb.LeaseKeepAliveResponse, error)) (k *keeper, opened *int) {
	opened = new(int)
	work := &storekit.Tasks{}
	k = &keeper{tasks: work, stale: asItIs, open: func(ctx context.Context) (pb.Lease_LeaseKeepAliveClient, error) {
		n := min(*opened, len(answers)-1)
		*opened++
		return &leader{ctx: ctx, asked: make(chan int64, 1000), answer: answers[n]}, nil
	}}
	t.Cleanup(func() {
		k.close()
		if err := work.Wait(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return k, opened
}

func asItIs(err error) error { return err }

func TestOneStreamKeepsAllAlive(t *testing.T) {
	k, opened := keeping(t, alive)
	var wg sync.WaitGroup
	for id := range clientv3.LeaseID(500) {
		wg.Go(func() {
			if ttl, err := k.keep(t.Context(), id); ttl != int64(id) || err != nil {
				t.Errorf("lease %d: %d, %v", id, ttl, err)
			}
		})
	}
	wg.Wait()
	if *opened != 1 {
		t.Errorf("%d streams, want 1", *opened)
	}
}

func TestABrokenStreamIsReplacedAndItsReasonIsThatOfOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		denied := errors.New("permission denied")
		k, opened := keeping(t, func(int64) (*pb.LeaseKeepAliveResponse, error) {
			time.Sleep(time.Second)
			return nil, denied
		}, alive)
		results := make(chan error, 5)
		for id := range clientv3.LeaseID(5) {
			go func() {
				_, err := k.keep(t.Context(), id)
				results <- err
			}()
		}
		concerned := 0
		for range 5 {
			err := <-results
			if err == nil {
				t.Error("no error")
			}
			if errors.Is(err, denied) {
				concerned++
			}
		}
		if concerned != 1 {
			t.Errorf("the reason was told as that of %d requests, want 1", concerned)
		}
		if ttl, err := k.keep(t.Context(), 7); ttl != 7 || err != nil || *opened != 2 {
			t.Errorf("%d, %v over %d streams; want 7 over the second", ttl, err, *opened)
		}
	})
}

func TestAStuckStreamIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := func(int64) (*pb.LeaseKeepAliveResponse, error) {
			time.Sleep(10 * time.Second)
			return nil, io.EOF
		}
		k, opened := keeping(t, stuck, alive)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := k.keep(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the end of the context", err)
		}
		if ttl, err := k.keep(t.Context(), 7); ttl != 7 || err != nil || *opened != 2 {
			t.Errorf("%d, %v over %d streams; want 7 over the second", ttl, err, *opened)
		}
	})
}

func TestACallerWhoGivesUpDisturbsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, opened := keeping(t, func(id int64) (*pb.LeaseKeepAliveResponse, error) {
			time.Sleep(time.Second)
			return alive(id)
		})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		if _, err := k.keep(ctx, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the end of the context", err)
		}
		if ttl, err := k.keep(t.Context(), 7); ttl != 7 || err != nil || *opened != 1 {
			t.Errorf("%d, %v over %d streams; want 7 over the first", ttl, err, *opened)
		}
	})
}

func TestAnAnswerToAnotherRequestIsNone(t *testing.T) {
	k, _ := keeping(t, func(id int64) (*pb.LeaseKeepAliveResponse, error) { return alive(id + 1) })
	if ttl, err := k.keep(t.Context(), 1); err == nil {
		t.Errorf("%d, want an error", ttl)
	}
}

func TestAStreamThatCantBeOpenedIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("authentication failed")
		var work storekit.Tasks
		k := &keeper{tasks: &work, stale: asItIs, open: func(context.Context) (pb.Lease_LeaseKeepAliveClient, error) { return nil, refused }}
		if _, err := k.keep(t.Context(), 1); !errors.Is(err, refused) {
			t.Errorf("%v, want %v", err, refused)
		}
		k.open = func(ctx context.Context) (pb.Lease_LeaseKeepAliveClient, error) { <-ctx.Done(); return nil, ctx.Err() }
		begin := time.Now()
		if _, err := k.keep(t.Context(), 1); err == nil || time.Since(begin) != patience {
			t.Errorf("%v after %v, want an error after %v", err, time.Since(begin), patience)
		}
	})
}

func TestAnIdleStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, opened := keeping(t, alive)
		for range 3 {
			if _, err := k.keep(t.Context(), 1); err != nil {
				t.Error(err)
			}
			time.Sleep(idleAfter - time.Second)
		}
		if *opened != 1 {
			t.Errorf("%d streams, want one for as long as it is used", *opened)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if k.current != nil {
			t.Error("the stream is open though nobody uses it")
		}
	})
}

// To open a stream may take a password, which takes the connection that is dead.
func TestAStreamThatIsNotOpenedInTimeIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, opened := keeping(t, alive)
		open := k.open
		k.open = func(ctx context.Context) (pb.Lease_LeaseKeepAliveClient, error) {
			if *opened == 0 {
				*opened++
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return open(ctx)
		}
		for within, want := range map[time.Duration]int{time.Millisecond: 1, time.Second: 2} { // a ctx that is about to end says nothing of the stream
			*opened = 0
			ctx, cancel := context.WithTimeout(t.Context(), within)
			if _, err := k.keep(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, want the end of the context", err)
			}
			cancel()
			patient, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			_, err := k.keep(patient, 7)
			cancel()
			if *opened != want || (err == nil) != (want == 2) {
				t.Errorf("after %v: %d streams, %v; want %d", within, *opened, err, want)
			}
			k.close()
		}
	})
}

func TestARequestOnAStreamWithAnOldTokenIsTriedOnAnother(t *testing.T) {
	old := func(int64) (*pb.LeaseKeepAliveResponse, error) { return nil, rpctypes.ErrGRPCInvalidAuthToken }
	for name, tt := range map[string]struct {
		client *clientv3.Client
		passes bool
	}{
		"with a password":                  {&clientv3.Client{Username: "app", Password: "secret"}, true},
		"with a token of the application":  {&clientv3.Client{Token: "t"}, false},
		"with neither, nor a way to a new": {&clientv3.Client{}, false},
	} {
		k, opened := keeping(t, old, alive)
		k.stale = (&Store{client: tt.client}).stale
		ttl, _, err := persist(t.Context(), func(ctx context.Context) (int64, error) { return k.keep(ctx, 7) })
		if tt.passes && (ttl != 7 || err != nil || *opened != 2) || !tt.passes && (!errors.Is(err, rpctypes.ErrInvalidAuthToken) || *opened != 1) {
			t.Errorf("%s: %d, %v over %d streams; want another one: %v", name, ttl, err, *opened, tt.passes)
		}
	}
}

package etcdstore

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/storekit"
)

// scripted is a hub over streams that the test feeds. Each opened stream is sent.
type scripted struct {
	hub
	work   storekit.Tasks
	opened chan chan clientv3.WatchResponse
	asked  atomic.Int32
}

func newScripted() *scripted {
	s := &scripted{opened: make(chan chan clientv3.WatchResponse, 10)}
	s.tasks, s.stale = &s.work, asItIs
	s.ask = func(context.Context) error { s.asked.Add(1); return nil }
	s.open = func(ctx context.Context) clientv3.WatchChan {
		feed := make(chan clientv3.WatchResponse, 10)
		s.opened <- feed
		out := make(chan clientv3.WatchResponse)
		go func() {
			defer close(out)
			for {
				select {
				case answer, ok := <-feed:
					if !ok {
						return
					}
					select {
					case out <- answer:
					case <-ctx.Done():
						return
					}
				case <-ctx.Done():
					return
				}
			}
		}()
		return out
	}
	return s
}

var created = clientv3.WatchResponse{Header: &pb.ResponseHeader{}, Created: true}

func deleted(names ...string) clientv3.WatchResponse {
	answer := clientv3.WatchResponse{Header: &pb.ResponseHeader{}}
	for _, name := range names {
		answer.Events = append(answer.Events, &clientv3.Event{Type: clientv3.EventTypeDelete, Kv: &mvccpb.KeyValue{Key: []byte(name)}})
	}
	return answer
}

// state tells what a channel says at this moment.
func state(freed <-chan struct{}) string {
	synctest.Wait()
	select {
	case _, open := <-freed:
		if open {
			return "signal"
		}
		return "closed"
	default:
		return "silent"
	}
}

func (s *scripted) end(t *testing.T) {
	s.close()
	if err := s.work.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAnEventWakesThoseWhoWatchItsKeyAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		defer s.end(t)
		a1, a2, b := s.watch("a"), s.watch("a"), s.watch("b")
		feed := <-s.opened
		feed <- created
		feed <- deleted("a", "nobody's")
		feed <- deleted("a")
		for name, w := range map[string]*watch{"first": a1, "second": a2} {
			if got := state(w.freed); got != "signal" {
				t.Errorf("%s watch of a: %s, want a signal", name, got)
			}
			if got := state(w.freed); got != "silent" {
				t.Errorf("%s watch of a: %s, want one signal only", name, got)
			}
		}
		if got := state(b.freed); got != "silent" {
			t.Errorf("watch of b: %s", got)
		}
		if len(s.opened) != 0 {
			t.Errorf("%d streams more, want one for all", len(s.opened))
		}
	})
}

func TestTheStreamEndsWithTheLastWatchAndBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		defer s.end(t)
		a, b := s.watch("a"), s.watch("b")
		s.unwatch(a)
		if a.stream != s.current {
			t.Fatal("the stream ended before its last watch")
		}
		s.unwatch(b)
		if err := s.work.Wait(t.Context()); err != nil || s.current != nil {
			t.Fatalf("the stream outlives its last watch (%v)", err)
		}
		again := s.watch("a")
		<-s.opened
		feed := <-s.opened
		feed <- created
		feed <- deleted("a")
		if got := state(again.freed); got != "signal" {
			t.Errorf("watch on the new stream: %s, want a signal", got)
		}
	})
}

func TestALostStreamLosesItsWatches(t *testing.T) {
	for name, lose := range map[string]func(chan clientv3.WatchResponse){
		"forgotten": func(feed chan clientv3.WatchResponse) {
			feed <- clientv3.WatchResponse{Header: &pb.ResponseHeader{}, Canceled: true, CompactRevision: 7}
		},
		"ended": func(feed chan clientv3.WatchResponse) { close(feed) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScripted()
				defer s.end(t)
				before := s.watch("a")
				feed := <-s.opened
				feed <- created
				synctest.Wait()
				lose(feed)
				if got := state(before.freed); got != "closed" {
					t.Errorf("%s, want closed", got)
				}
				s.unwatch(before)
				after := s.watch("a")
				if after.stream == before.stream {
					t.Error("a watch joined the lost stream")
				}
			})
		})
	}
}

func TestWatchWaitsUntilTheStreamIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		store := anyStore(t)
		store.hub.open, store.hub.tasks = s.open, &store.tasks
		type result struct {
			freed <-chan struct{}
			stop  func()
			err   error
		}
		returned := make(chan result, 1)
		go func() {
			freed, stop, err := store.Watch(t.Context(), "a/b")
			returned <- result{freed, stop, err}
		}()
		feed := <-s.opened
		time.Sleep(time.Second)
		if len(returned) != 0 {
			t.Fatal("Watch returned before etcd confirmed it")
		}
		feed <- created
		r := <-returned
		if r.err != nil {
			t.Fatal(r.err)
		}
		feed <- deleted("p/a%2Fb")
		if got := state(r.freed); got != "signal" {
			t.Errorf("%s, want a signal", got)
		}
		r.stop()
		r.stop()
		if err := store.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestWatchThatIsNotConfirmedIsAnError(t *testing.T) {
	for name, tt := range map[string]struct {
		disturb func(*Store, chan clientv3.WatchResponse, context.CancelFunc)
		want    error
	}{
		"silence":     {func(*Store, chan clientv3.WatchResponse, context.CancelFunc) {}, lockfx.ErrStore},
		"no leader":   {func(_ *Store, feed chan clientv3.WatchResponse, _ context.CancelFunc) { close(feed) }, lockfx.ErrStore},
		"closed":      {func(s *Store, _ chan clientv3.WatchResponse, _ context.CancelFunc) { s.hub.close() }, lockfx.ErrStore},
		"ctx is over": {func(_ *Store, _ chan clientv3.WatchResponse, cancel context.CancelFunc) { cancel() }, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScripted()
				store := anyStore(t)
				store.hub.open, store.hub.tasks = s.open, &store.tasks
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { tt.disturb(store, <-s.opened, cancel) }()
				_, stop, err := store.Watch(ctx, "a")
				if !errors.Is(err, tt.want) || stop != nil {
					t.Errorf("%v, want %v", err, tt.want)
				}
				if err := store.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

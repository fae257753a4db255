package etcdstore

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Nothing else tells of a connection that is dead.
func TestAStreamOnWhichEtcdDoesNotAnswerIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		defer s.end(t)
		w := s.watch("a")
		feed := <-s.opened
		feed <- created
		for range 20 { // etcd answers whenever it is asked
			time.Sleep(askEvery)
			feed <- clientv3.WatchResponse{Header: &pb.ResponseHeader{}}
			if got := state(w.freed); got != "silent" {
				t.Fatalf("%s while etcd answers", got)
			}
		}
		if n := s.asked.Load(); n != 20 {
			t.Errorf("asked %d times in %v, want 20", n, 20*askEvery)
		}
		begin := time.Now()
		<-w.freed
		if took := time.Since(begin); took != 15*time.Second {
			t.Errorf("lost after %v, want 15 s", took)
		}
	})
}

// A stream that is not confirmed may be on a dead connection: the next one is another.
func TestAStreamThatIsNotConfirmedIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		defer s.end(t)
		hurried, cancel := context.WithTimeout(t.Context(), time.Millisecond) // it says nothing of the stream
		defer cancel()
		if _, err := s.settled(hurried, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		<-s.opened
		patient := make(chan error)
		go func() {
			_, err := s.settled(t.Context(), "b")
			patient <- err
		}()
		feed := <-s.opened
		attempt, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.settled(attempt, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := <-patient; !errors.Is(err, errSilent) || !passes(err) {
			t.Errorf("%v; want an error that passes", err)
		}
		feed <- created // too late
		w := make(chan *watch)
		go func() {
			got, err := s.settled(t.Context(), "a")
			if err != nil {
				t.Error(err)
			}
			w <- got
		}()
		(<-s.opened) <- created
		s.unwatch(<-w)
	})
}

func TestTheReasonOfALostWatchIsEtcds(t *testing.T) {
	refused := errors.New(rpctypes.ErrGRPCPermissionDenied.Error()) // as the client keeps it
	if err := reasonOf(refused); !errors.Is(err, rpctypes.ErrPermissionDenied) || passes(err) {
		t.Errorf("%v; want %v, which is final", err, rpctypes.ErrPermissionDenied)
	}
	if other := errors.New("other"); !errors.Is(reasonOf(other), other) {
		t.Error(reasonOf(other))
	}
	if passes(errClosed) {
		t.Error("a closed store is opened again by whoever still watched")
	}
}

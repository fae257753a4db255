package etcdstore

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
)

const (
	// askEvery is how often etcd is asked for an answer on a stream. Of a connection that
	// is dead nobody learns otherwise.
	askEvery = 5 * time.Second
	// unheard is how many of these may be without one in a row. One may be, since etcd
	// gives none while events are on their way.
	unheard = 2
)

// stream is a watch of etcd on all keys of the store.
type stream struct {
	cancel  context.CancelFunc
	settled chan struct{} // closed when etcd has confirmed it, or err is set
	err     error         // guarded by hub.mu until settled is closed
	watches map[string]map[*watch]struct{}
}

var (
	errClosed = errors.New("the store was closed")
	errLost   = errors.New("the watch was lost")
	errSilent = errors.New("etcd does not answer on the watch")
)

// start starts a stream. h.mu is held.
func (h *hub) start() *stream {
	ctx, cancel := context.WithCancel(ownStream(h.name))
	st := &stream{cancel: cancel, settled: make(chan struct{}), watches: map[string]map[*watch]struct{}{}}
	h.tasks.Go(func() {
		err := h.follow(ctx, st)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.drop(st, err)
	})
	return st
}

// ownStream returns the context of a watch that shares its stream of gRPC with no watch of
// the application: that may be as old as a token which is good no longer.
func ownStream(name string) context.Context {
	return metadata.AppendToOutgoingContext(clientv3.WithRequireLeader(context.Background()), "lockfx-watch", name)
}

// follow wakes those who watch until the stream ends. The client makes a broken
// connection anew and goes on from the last event, so the end of the stream means
// that etcd has no leader, or has forgotten what happened meanwhile, or is silent.
func (h *hub) follow(ctx context.Context, st *stream) error {
	ask := time.NewTicker(askEvery)
	defer ask.Stop()
	answers, asked := h.open(ctx), 0
	for {
		select {
		case answer, ok := <-answers:
			if !ok {
				return errLost
			}
			if err := answer.Err(); err != nil {
				return h.stale(reasonOf(err))
			}
			asked = 0
			h.take(st, answer)
		case <-ask.C:
			if asked == unheard {
				return errSilent
			}
			asked++
			h.tasks.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, askEvery)
				defer cancel()
				_ = h.ask(ctx) // what matters is whether etcd answers
			})
		}
	}
}

func (h *hub) take(st *stream, answer clientv3.WatchResponse) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if answer.Created && !st.isSettled() {
		close(st.settled)
	}
	for _, event := range answer.Events {
		st.wake(string(event.Kv.Key))
	}
}

func (st *stream) isSettled() bool {
	select {
	case <-st.settled:
		return true
	default:
		return false
	}
}

// wake signals all who watch the name. A channel that is full already says the same.
// hub.mu is held.
func (st *stream) wake(name string) {
	for w := range st.watches[name] {
		select {
		case w.freed <- struct{}{}:
		default:
		}
	}
}

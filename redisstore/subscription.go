package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// pingEvery keeps an idle subscription known to be alive.
	pingEvery = 2 * time.Second
	// silence is how long a live server can say nothing: a ping is answered within a second.
	silence = pingEvery + time.Second
	// connectAgain is from one connection to the next at least.
	connectAgain = 100 * time.Millisecond
)

// subscription serves watches over one connection at a time. Its topics say what
// should be subscribed, and wire what is.
type subscription struct {
	hub     *hub
	cancel  context.CancelFunc
	changed chan struct{} // of capacity 1: topics have changed

	topics map[string]*topic // guarded by hub.mu
	// wire has the channels that were subscribed on the present connection, and
	// whether the server confirmed it. Guarded by hub.mu.
	wire map[string]bool
}

// start starts a subscription. h.mu is held.
func (h *hub) start() *subscription {
	ctx, cancel := context.WithCancel(context.Background())
	sub := &subscription{hub: h, cancel: cancel, changed: make(chan struct{}, 1), topics: map[string]*topic{}}
	h.tasks.run(func() { sub.run(ctx) })
	return sub
}

func (s *subscription) poke() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// run keeps the subscription alive until ctx ends. A connection that has worked and
// breaks is replaced, without haste if it had not lasted; one that has not worked is
// the end of all watches, since those who wait know best how to go on.
func (s *subscription) run(ctx context.Context) {
	for {
		began := time.Now()
		worked, err := s.connect(ctx)
		if worked && !refused(err) && pause(ctx, connectAgain-time.Since(began)) && ctx.Err() == nil {
			continue
		}
		s.hub.mu.Lock()
		s.hub.drop(s, err)
		s.hub.mu.Unlock()
		return
	}
}

// refused reports whether the server answered, with an error.
func refused(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer)
}

// connect serves the watches over one connection, until that breaks or ctx ends. It
// reports whether the server has confirmed anything.
func (s *subscription) connect(ctx context.Context) (worked bool, err error) {
	s.hub.mu.Lock()
	s.wire = map[string]bool{}
	s.hub.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pubsub := s.hub.subscribe(ctx)
	received := make(chan error, 1)
	go func() { received <- s.receive(ctx, pubsub, &worked) }()
	err = s.send(ctx, pubsub, received)
	cancel()
	_ = pubsub.Close() // it ends the receiver too
	if got := <-received; refused(got) {
		err = got // the reason, where the sender saw a closed connection
	}
	return worked, err
}

// send subscribes what is watched, gives up what is not, and pings, until the
// receiver ends or ctx does.
func (s *subscription) send(ctx context.Context, pubsub *redis.PubSub, received chan error) error {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		err := s.adjust(ctx, pubsub)
		if err != nil {
			return err
		}
		select {
		case <-s.changed:
		case <-ping.C:
			err = pubsub.Ping(ctx)
		case err = <-received:
			received <- err // for connect
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// adjust makes what is subscribed equal to what is watched.
func (s *subscription) adjust(ctx context.Context, pubsub *redis.PubSub) error {
	var add, remove []string
	s.hub.mu.Lock()
	for name := range s.topics {
		if _, ok := s.wire[name]; !ok {
			add = append(add, name)
			s.wire[name] = false
		}
	}
	for name := range s.wire {
		if _, ok := s.topics[name]; !ok {
			remove = append(remove, name)
			delete(s.wire, name)
		}
	}
	s.hub.mu.Unlock()
	if len(add) > 0 {
		if err := pubsub.Subscribe(ctx, add...); err != nil {
			return err
		}
	}
	if len(remove) > 0 {
		return pubsub.Unsubscribe(ctx, remove...)
	}
	return nil
}

// receive wakes those who watch, until the connection breaks or is silent for too
// long.
func (s *subscription) receive(ctx context.Context, pubsub *redis.PubSub, worked *bool) error {
	for {
		message, err := pubsub.ReceiveTimeout(ctx, silence)
		if err != nil {
			return err
		}
		switch m := message.(type) {
		case *redis.Subscription:
			if m.Kind == "subscribe" {
				*worked = true
				s.confirmed(m.Channel)
			}
		case *redis.Message:
			s.published(m.Channel)
		}
	}
}

// confirmed settles a topic. It wakes as well: what was published while there was
// no subscription is lost.
func (s *subscription) confirmed(channel string) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if _, ok := s.wire[channel]; ok {
		s.wire[channel] = true
	}
	if t, ok := s.topics[channel]; ok {
		if !t.isSettled() {
			close(t.settled)
		}
		t.wake()
	}
}

func (s *subscription) published(channel string) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if t, ok := s.topics[channel]; ok {
		t.wake()
	}
}

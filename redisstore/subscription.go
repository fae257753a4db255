package redisstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfx/lockfx/storekit"
)

const (
	// pingEvery keeps an idle subscription known to be alive.
	pingEvery = 2 * time.Second
	// silence is how long a live server can say nothing: a ping is answered within a second.
	silence = pingEvery + time.Second
	// connectAgain is from one connection to the next at least.
	connectAgain = 100 * time.Millisecond
)

// listen serves all watches over one connection at a time, until ctx ends. A connection
// that has worked and breaks is replaced, without haste if it had not lasted; one that has
// not worked is the end of all watches, since those who wait know best how to go on.
func (s *Store) listen(ctx context.Context, source *storekit.Source) error {
	for {
		began := time.Now()
		c := &subscription{source: source, wire: map[string]bool{}}
		err := c.serve(ctx, s.client)
		if !c.worked || refused(err) || !pause(ctx, connectAgain-time.Since(began)) || ctx.Err() != nil {
			return err
		}
	}
}

// refused reports whether the server answered, with an error.
func refused(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer)
}

// subscription is one connection that listens.
type subscription struct {
	source *storekit.Source
	pubsub *redis.PubSub

	mu     sync.Mutex      // guards what follows
	wire   map[string]bool // the channels that were subscribed, and whether that is confirmed
	worked bool            // the server has confirmed something
}

// serve listens until the connection breaks or ctx ends.
func (c *subscription) serve(ctx context.Context, client redis.UniversalClient) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.pubsub = client.Subscribe(ctx)
	received := make(chan error, 1)
	go func() { received <- c.receive(ctx) }()
	err := c.send(ctx, received)
	cancel()
	_ = c.pubsub.Close() // it ends the receiver too
	if got := <-received; refused(got) {
		err = got // the reason, where the sender saw a closed connection
	}
	return err
}

// send subscribes what is watched, gives up what is not, and pings, until the
// receiver ends or ctx does.
func (c *subscription) send(ctx context.Context, received chan error) error {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		err := c.adjust(ctx)
		if err != nil {
			return err
		}
		select {
		case <-c.source.Changed():
		case <-ping.C:
			err = c.pubsub.Ping(ctx)
		case err = <-received:
			received <- err // for serve
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// adjust makes what is subscribed equal to what is watched.
func (c *subscription) adjust(ctx context.Context) error {
	add, remove := c.differences()
	if len(add) > 0 {
		if err := c.pubsub.Subscribe(ctx, add...); err != nil {
			return err
		}
	}
	if len(remove) > 0 {
		return c.pubsub.Unsubscribe(ctx, remove...)
	}
	return nil
}

func (c *subscription) differences() (add, remove []string) {
	names := c.source.Names()
	watched := make(map[string]bool, len(names))
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		watched[name] = true
		switch confirmed, subscribed := c.wire[name]; {
		case !subscribed:
			add = append(add, name)
			c.wire[name] = false
		case confirmed: // from an earlier watch, and not given up yet
			c.source.Confirm(name)
		}
	}
	for name := range c.wire {
		if !watched[name] {
			remove = append(remove, name)
			delete(c.wire, name)
		}
	}
	return add, remove
}

// receive wakes those who watch, until the connection breaks or is silent for too
// long.
func (c *subscription) receive(ctx context.Context) error {
	for {
		message, err := c.pubsub.ReceiveTimeout(ctx, silence)
		if err != nil {
			return err
		}
		switch m := message.(type) {
		case *redis.Subscription:
			if m.Kind == "subscribe" {
				c.confirmed(m.Channel)
			}
		case *redis.Message:
			c.source.Wake(m.Channel)
		}
	}
}

// confirmed confirms the watches of a channel. It wakes as well: what was published while
// there was no subscription is lost.
func (c *subscription) confirmed(channel string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.worked = true
	if _, ok := c.wire[channel]; ok {
		c.wire[channel] = true
	}
	c.source.Confirm(channel)
	c.source.Wake(channel)
}

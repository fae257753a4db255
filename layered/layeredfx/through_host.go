package layeredfx

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
	"github.com/lockfx/lockfx/layered"
)

// ThroughHost makes the runs of a lock queue on the layers of this host before they
// ask the store, so that of all replicas on one host one contends with other hosts:
//
//	fxlock.Module("nightly", fxlock.WithStore(store), layeredfx.ThroughHost())
//
// The store still decides; the layers spare it requests. They are held from before
// the first request until the run is over. What they lock is the lock's key in the
// namespace "fxlock", unless opts say otherwise. How long to wait is said by
// [fxlock.Wait] alone: a timeout among opts is overruled. Without it there is one
// attempt at each layer.
//
// When another on this host is in the way, the error is a [lockfx.NotAcquiredError]
// whose HeldBy names the layer. A layer that can't be had, or not be given back, is an
// error of the run. That the poll layer was lost meanwhile is none: the lease is not.
// The run's log lines and events note what each layer came to. Faults of opts are
// errors of the lock's options.
func ThroughHost(opts ...layered.LockerOption) fxlock.RunOption {
	h := &host{text: "layeredfx.ThroughHost(" + strings.Join(texts(opts), ", ") + ")"}
	h.locker, h.fault = layered.New(append([]layered.LockerOption{layered.WithNamespace("fxlock")}, opts...)...)
	return fxlock.WithGate(h)
}

// host is a gate made of layers.
type host struct {
	text   string
	locker *layered.Locker
	fault  error
}

var _ fxlock.Gate = (*host)(nil)

func (h *host) String() string { return h.text }

// Check returns the faults of the options.
func (h *host) Check() error { return h.fault }

// Enter acquires the layers.
func (h *host) Enter(ctx context.Context, key string, limit time.Duration) (leave func() error, note string, err error) {
	patience := layered.WithTimeout(math.MaxInt64) // ctx ends the wait
	if limit == 0 {
		patience = layered.WithTimeout(0)
	}
	entered, leaving, left := make(chan layered.Info, 1), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := layered.WithLock(ctx, struct{}{}, func(_ context.Context, call layered.Call[struct{}]) (struct{}, error) {
			entered <- call.Lock
			<-leaving // not ctx: it bounds the waiting
			return struct{}{}, nil
		}, layered.WithLocker(h.locker), layered.WithKey(key), patience)
		left <- err
	}()
	select {
	case info := <-entered:
		return func() error {
			close(leaving)
			return exceptLoss(<-left)
		}, noteOf(info), nil
	case err := <-left:
		return nil, "", refusal(ctx, key, err)
	}
}

// refusal says which layer is held by another, if that is why the layers were not
// acquired.
func refusal(ctx context.Context, key string, err error) error {
	var timeout *layered.TimeoutError
	var layer *layered.LayerError
	switch {
	case errors.As(err, &timeout):
		return heldOn(key, timeout.Layer)
	case errors.As(err, &layer) && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return heldOn(key, layer.Layer)
	}
	return err
}

// exceptLoss returns err unless all it says is that the poll layer was lost.
func exceptLoss(err error) error {
	var lost *layered.LostError
	var layer *layered.LayerError
	if errors.As(err, &lost) && !errors.As(err, &layer) {
		return nil
	}
	return err
}

func heldOn(key string, l layered.Layer) error {
	return &lockfx.NotAcquiredError{Key: key, HeldBy: fmt.Sprintf("another on this host (%v layer)", l)}
}

// noteOf says what each layer came to.
func noteOf(info layered.Info) string {
	var said []string
	for l := layered.LayerMemory; l <= layered.LayerPoll; l++ {
		layer := info.Layer(l)
		text := l.String() + " " + layer.Outcome.String()
		if layer.Reason != "" {
			text += " (" + layer.Reason + ")"
		}
		said = append(said, text)
	}
	return fmt.Sprintf("this host: %s; waited %v", strings.Join(said, ", "), info.Waited.Round(time.Microsecond))
}

func texts(opts []layered.LockerOption) []string {
	all := make([]string, len(opts))
	for i, o := range opts {
		all[i] = "nil"
		if o != nil {
			all[i] = o.String()
		}
	}
	return all
}

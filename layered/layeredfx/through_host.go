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
// ask the store, so that one of the replicas on a host contends with other hosts:
//
//	fxlock.Module("nightly", fxlock.WithStore(store), layeredfx.ThroughHost())
//
// The layers only spare the store requests; the store decides. A run that waits does so at
// the layers, and asks the store without them if it did not get them within a ttl, or
// within half of a shorter limit; then again when the lease in the way may have ended. So
// if the holder of the layers was stopped or cut off, another replica of its host takes over
// as soon as one of another host could. Behind a holder that renews its lease, each
// replica that waits asks the store about once a ttl. A run that does not wait makes one
// attempt at the layers, and asks the store in any case.
//
// The layers are held from before the first request until the run is over. They lock
// the lock's key in the namespace "fxlock", unless opts say otherwise. [fxlock.Wait] alone
// says how long to wait: a timeout among opts is overruled.
//
// A layer that fails, or can't be released, is an error of the run. A file system that does
// not answer is treated as a layer that another holds. The loss of a layer is no error:
// the lease is not lost. The run's log lines and events say what each layer came to, or who
// was in the way. Faults of opts are errors of the lock's options.
func ThroughHost(opts ...layered.LockerOption) fxlock.RunOption {
	h := &host{withLock: layered.WithLock[struct{}, struct{}], text: "layeredfx.ThroughHost(" + strings.Join(texts(opts), ", ") + ")"}
	h.locker, h.fault = layered.New(append([]layered.LockerOption{layered.WithNamespace("fxlock")}, opts...)...)
	return fxlock.WithGate(h)
}

// host is a gate made of layers.
type host struct {
	text     string
	locker   *layered.Locker
	fault    error
	withLock func(context.Context, struct{}, func(context.Context, layered.Call[struct{}]) (struct{}, error), ...layered.Option) (
		layered.Result[struct{}, struct{}], error)
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
		_, err := h.withLock(ctx, struct{}{}, func(_ context.Context, call layered.Call[struct{}]) (struct{}, error) {
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
			return exceptLoss(answer(left))
		}, noteOf(info), nil
	case err := <-left:
		return nil, "", refusal(ctx, key, err)
	case <-ctx.Done():
		close(leaving) // in case it still gets them
		return nil, "", refusal(ctx, key, answer(left))
	}
}

// answersWithin is how long a file system may take for what it does at once.
const answersWithin = 5 * time.Second

var errNoAnswer = errors.New("the file system of the layers does not answer")

// answer returns what comes from left, or an error if nothing comes.
func answer(left <-chan error) error {
	timer := time.NewTimer(answersWithin)
	defer timer.Stop()
	select {
	case err := <-left:
		return err
	case <-timer.C:
		return errNoAnswer
	}
}

// refusal says which layer is held by another, if that is why the layers were not
// acquired.
func refusal(ctx context.Context, key string, err error) error {
	var timeout *layered.TimeoutError
	var layer *layered.LayerError
	switch {
	case err == nil, errors.Is(err, errNoAnswer):
		return &lockfx.NotAcquiredError{Key: key, HeldBy: "a file system that does not answer"}
	case errors.As(err, &timeout):
		return heldOn(key, timeout.Layer)
	case errors.As(err, &layer) && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return heldOn(key, layer.Layer)
	}
	return err
}

// exceptLoss returns err unless all it says is that a layer was lost.
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

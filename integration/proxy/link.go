package proxy

import (
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// link is one connection through the proxy.
type link struct {
	proxy            *Proxy
	client, upstream net.Conn
	ended            chan struct{} // closed when the proxy cuts the link
	once             sync.Once

	gate chan struct{} // nil, or closed when what is held may pass; guarded by proxy.mu
	held *arrest       // of a request that began on this link; guarded by proxy.mu
	lost bool          // something was swallowed; guarded by proxy.mu
}

func (l *link) cut() {
	l.once.Do(func() {
		close(l.ended)
		_ = l.client.Close()
		_ = l.upstream.Close()
	})
}

// forward carries both directions and returns when both have ended.
func (l *link) forward() {
	var wg sync.WaitGroup
	wg.Go(func() { l.carry(l.upstream, l.client, false) })
	wg.Go(func() { l.carry(l.client, l.upstream, true) })
	wg.Wait()
	l.cut()
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	l.answered()
}

// answered notes that the target has dealt with the request that was held. l.proxy.mu
// is held.
func (l *link) answered() {
	if l.held != nil {
		close(l.held.answered)
		l.held = nil
	}
}

// carry copies from one side to the other. The end of the one becomes the end of
// the other, at the time when what came before it has passed.
func (l *link) carry(to, from net.Conn, replies bool) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		swallowed, passes := l.await(replies, n > 0)
		if !passes {
			return
		}
		if n > 0 && !swallowed {
			if _, err := to.Write(buf[:n]); err != nil {
				l.cut()
				return
			}
		}
		if err != nil {
			l.end(to, replies)
			return
		}
	}
}

// end passes the end of a direction on. A client that closes wants no answers.
func (l *link) end(to net.Conn, replies bool) {
	if half, ok := to.(*net.TCPConn); ok && !replies {
		_ = half.CloseWrite()
		return
	}
	l.cut()
}

// await waits for the gate and the delay, and reports whether what was read is to
// be swallowed; passes is false when the link was cut meanwhile.
func (l *link) await(replies, something bool) (swallowed, passes bool) {
	l.proxy.mu.Lock()
	if a := l.proxy.next; a != nil && something && !replies {
		l.proxy.next, l.gate, l.held = nil, a.gate, a
	}
	gate, delay := l.gate, l.proxy.delay
	if rand.Float64() < l.proxy.loss {
		delay += l.proxy.resent
	}
	l.proxy.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-l.ended:
			return false, false
		}
	}
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.ended:
			return false, false
		}
	}
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	if replies && something {
		l.answered()
	}
	swallowed = l.proxy.fault == BlackHole || l.proxy.fault == LoseReplies && replies
	l.lost = l.lost || swallowed
	return swallowed, true
}

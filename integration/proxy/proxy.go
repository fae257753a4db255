package proxy

import (
	"net"
	"sync"
	"time"
)

// Fault is what happens to connections.
type Fault uint8

// The faults.
const (
	None        Fault = iota
	Drop              // connections are cut, and new ones closed at once
	BlackHole         // connections stay open and carry nothing, and new ones too
	LoseReplies       // requests arrive, and answers do not
)

// Proxy forwards connections to a target. It is safe for concurrent use.
type Proxy struct {
	listener net.Listener
	wg       sync.WaitGroup // of the goroutines that forward

	mu     sync.Mutex // guards what follows
	target string
	fault  Fault
	delay  time.Duration
	loss   float64       // how much of what is carried is lost at first
	resent time.Duration // after how long that is sent again
	next   *arrest       // of the next request, until one is kept back
	links  map[*link]struct{}
	closed bool
}

// arrest keeps one request back.
type arrest struct {
	gate     chan struct{} // closed when the request may pass
	answered chan struct{} // closed when the target has answered it, or its link has ended
}

// New starts a proxy to target on a random port of the loopback interface.
func New(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, target: target, links: map[*link]struct{}{}}
	p.wg.Go(p.accept)
	return p, nil
}

// Addr returns the address that stands for the target.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Retarget sends later connections to another target, and cuts the present ones.
func (p *Proxy) Retarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
	p.cut(func(*link) bool { return true })
}

// Inflict sets the fault until heal is called. What was swallowed is gone for good,
// so heal also cuts the connections that lost something.
func (p *Proxy) Inflict(f Fault) (heal func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
	if f == Drop {
		p.cut(func(*link) bool { return true })
	}
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.fault = None
		p.cut(func(l *link) bool { return l.lost })
	})
}

// Delay holds back everything for d in each direction, until d is set to 0.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Lose loses a share of what is carried, in each direction, as a bad line does: it arrives
// when its sender has sent it again, and so does what follows it on its connection. A share
// of 0 ends that.
func (p *Proxy) Lose(share float64, again time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loss, p.resent = share, again
}

// Hold keeps back what the present connections carry from now on, requests and
// answers, until let is called; it then arrives late, as after a partition. The
// target does not learn that a client has closed such a connection before that.
// Connections made later are not held.
func (p *Proxy) Hold() (let func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	gate := make(chan struct{})
	for l := range p.links {
		l.gate = gate
	}
	return sync.OnceFunc(func() { close(gate) })
}

// HoldNext keeps back the next thing that any client sends, and whatever follows it on
// its connection, until deliver is called; it then arrives late, also if its client has
// closed the connection meanwhile. Other connections, present and later ones, carry on.
// deliver returns when the target has answered, or ended the connection; if nothing was
// kept back, at once.
func (p *Proxy) HoldNext() (deliver func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := &arrest{gate: make(chan struct{}), answered: make(chan struct{})}
	p.next = a
	return sync.OnceFunc(func() {
		p.mu.Lock()
		idle := p.next == a
		if idle {
			p.next = nil
		}
		p.mu.Unlock()
		if !idle {
			close(a.gate)
			<-a.answered
		}
	})
}

// Connections returns how many connections are open.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Lost returns how many of the open connections have lost something.
func (p *Proxy) Lost() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if l.lost {
			n++
		}
	}
	return n
}

// Close cuts all connections and returns when nothing of the proxy runs any more.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.cut(func(*link) bool { return true })
	p.mu.Unlock()
	p.wg.Wait()
}

// cut closes the connections that meet the condition. p.mu is held.
func (p *Proxy) cut(which func(*link) bool) {
	for l := range p.links {
		if which(l) {
			l.cut()
		}
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.connect(client) })
	}
}

func (p *Proxy) connect(client net.Conn) {
	p.mu.Lock()
	target, refused := p.target, p.fault == Drop || p.closed
	p.mu.Unlock()
	if refused {
		_ = client.Close()
		return
	}
	upstream, err := net.Dial("tcp", target)
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{proxy: p, client: client, upstream: upstream, ended: make(chan struct{})}
	p.mu.Lock()
	p.links[l] = struct{}{}
	if p.closed || p.fault == Drop {
		l.cut()
	}
	p.mu.Unlock()
	l.forward()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

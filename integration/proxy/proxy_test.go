package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/lockfx/lockfx/integration/proxy"
)

// echo answers each line with itself, and tells what it has heard.
func echo(t *testing.T) (addr string, heard <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 16)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close() //nolint:errcheck // a test
				for in := bufio.NewScanner(c); in.Scan(); {
					lines <- in.Text()
					fmt.Fprintln(c, in.Text()) //nolint:errcheck // the client may be gone
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return l.Addr().String(), lines
}

func start(t *testing.T) (*proxy.Proxy, <-chan string) {
	t.Helper()
	addr, heard := echo(t)
	p, err := proxy.New(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, heard
}

type client struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, p *proxy.Proxy) *client {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &client{t, c, bufio.NewReader(c)}
}

func (c *client) say(line string) {
	c.t.Helper()
	if _, err := fmt.Fprintln(c, line); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) hears(line string) {
	c.t.Helper()
	c.within(10 * time.Second)
	if got, err := c.in.ReadString('\n'); got != line+"\n" {
		c.t.Fatalf("heard %q, %v; want %q", got, err, line)
	}
}

func (c *client) hearsNothing() {
	c.t.Helper()
	c.within(50 * time.Millisecond)
	if b, err := c.in.ReadByte(); !os.IsTimeout(err) {
		c.t.Fatalf("heard %q, %v; want nothing", b, err)
	}
}

func (c *client) isCut() {
	c.t.Helper()
	c.within(10 * time.Second)
	if _, err := io.Copy(io.Discard, c.in); os.IsTimeout(err) {
		c.t.Fatal("the connection is still open")
	}
}

func (c *client) within(d time.Duration) {
	if err := c.SetReadDeadline(time.Now().Add(d)); err != nil {
		c.t.Fatal(err)
	}
}

func TestForwards(t *testing.T) {
	p, _ := start(t)
	c := dial(t, p)
	c.say("hello")
	c.hears("hello")
}

func TestDropCutsAndRefuses(t *testing.T) {
	p, _ := start(t)
	c := dial(t, p)
	c.say("before")
	c.hears("before")
	heal := p.Inflict(proxy.Drop)
	c.isCut()
	dial(t, p).isCut()
	heal()
	again := dial(t, p)
	again.say("after")
	again.hears("after")
}

func TestBlackHoleSwallowsBothWays(t *testing.T) {
	p, heard := start(t)
	c, idle := dial(t, p), dial(t, p)
	idle.say("before")
	idle.hears("before")
	<-heard
	heal := p.Inflict(proxy.BlackHole)
	c.say("lost")
	c.hearsNothing()
	if len(heard) > 0 {
		t.Errorf("the target heard %q", <-heard)
	}
	heal()
	c.isCut()
	idle.say("after")
	idle.hears("after")
}

func TestLoseRepliesLetsRequestsThrough(t *testing.T) {
	p, heard := start(t)
	c := dial(t, p)
	heal := p.Inflict(proxy.LoseReplies)
	c.say("request")
	if got := <-heard; got != "request" {
		t.Errorf("the target heard %q", got)
	}
	c.hearsNothing()
	if n := p.Lost(); n != 1 {
		t.Errorf("%d connections have lost something, want 1", n)
	}
	heal()
	c.isCut()
}

func TestHoldDeliversLateAndOnce(t *testing.T) {
	p, heard := start(t)
	held := dial(t, p)
	held.say("before")
	held.hears("before")
	<-heard
	let := p.Hold()
	held.say("late")
	_ = held.Close()
	fresh := dial(t, p)
	fresh.say("fresh")
	fresh.hears("fresh")
	if got := <-heard; got != "fresh" {
		t.Errorf("the target heard %q first", got)
	}
	let()
	if got := <-heard; got != "late" {
		t.Errorf("the target heard %q, want what was held", got)
	}
}

func TestHoldNextDelaysOneRequest(t *testing.T) {
	p, heard := start(t)
	held, other := dial(t, p), dial(t, p)
	held.say("before")
	held.hears("before")
	<-heard
	deliver := p.HoldNext()
	held.say("late")
	held.hearsNothing()
	_ = held.Close()
	other.say("present connection")
	other.hears("present connection")
	<-heard
	fresh := dial(t, p)
	fresh.say("fresh connection")
	fresh.hears("fresh connection")
	if got := <-heard; got != "fresh connection" {
		t.Errorf("the target heard %q before it was delivered", got)
	}
	deliver()
	if len(heard) != 1 || <-heard != "late" {
		t.Error("the target had not heard what was held when deliver returned")
	}
}

func TestHoldNextOfNothingEndsWithDeliver(t *testing.T) {
	p, _ := start(t)
	p.HoldNext()()
	c := dial(t, p)
	c.say("hello")
	c.hears("hello")
}

func TestDelay(t *testing.T) {
	p, _ := start(t)
	c := dial(t, p)
	p.Delay(20 * time.Millisecond)
	begin := time.Now()
	c.say("slow")
	c.hears("slow")
	if took := time.Since(begin); took < 40*time.Millisecond {
		t.Errorf("an exchange took %v, want at least twice the delay", took)
	}
}

func TestLoseDelaysWhatIsLost(t *testing.T) {
	p, _ := start(t)
	c := dial(t, p)
	for _, share := range []float64{1, 0} {
		p.Lose(share, 40*time.Millisecond)
		begin := time.Now()
		c.say("hello")
		c.hears("hello")
		if took := time.Since(begin); share == 1 && took < 80*time.Millisecond {
			t.Errorf("an exchange took %v, want at least twice the time to send it again", took)
		}
	}
}

func TestRetarget(t *testing.T) {
	p, _ := start(t)
	c := dial(t, p)
	c.say("old")
	c.hears("old")
	addr, heard := echo(t)
	p.Retarget(addr)
	c.isCut()
	again := dial(t, p)
	again.say("new")
	again.hears("new")
	if got := <-heard; got != "new" {
		t.Errorf("the new target heard %q", got)
	}
}

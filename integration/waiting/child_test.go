package queue_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
)

const variable = "LOCKFX_WAITING_ORDER"

// within bounds everything that a test waits for.
const within = 3 * time.Minute

// order is what another process is told to do: one of these.
type order struct {
	Crowd *crowd
	Lead  *leaders
	Start *starter
}

// news is what the other process says, one line each.
type news struct {
	Ready  bool                    // it waits, or it leads
	Sent   int64                   // requests, at the end of a crowd
	Tokens map[string]lockfx.Token // by key, of those who lead
	Err    string
}

// child returns at once in an ordinary process. In a process that told started it
// does what it was told, and never returns.
func child() {
	text, ok := os.LookupEnv(variable)
	if !ok {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends when the parent does
		os.Exit(1)
	}()
	out := json.NewEncoder(os.Stdout)
	say := func(n news) {
		if out.Encode(n) != nil {
			os.Exit(1)
		}
	}
	var o order
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = o.obey(say)
	}
	if err != nil {
		say(news{Err: err.Error()})
		os.Exit(1)
	}
	os.Exit(0)
}

func (o order) obey(say func(news)) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	switch {
	case o.Start != nil:
		return o.Start.work(ctx, func() { say(news{Ready: true}) })
	case o.Crowd != nil:
		sent, err := o.Crowd.meet(ctx, func() { say(news{Ready: true}) })
		if err != nil {
			return err
		}
		say(news{Sent: sent})
		return nil
	case o.Lead != nil:
		return o.Lead.lead(ctx, func(tokens map[string]lockfx.Token) { say(news{Ready: true, Tokens: tokens}) })
	}
	return errors.New("there is nothing to do")
}

// other is another process, which is this program, started again.
type other struct {
	cmd *exec.Cmd
	out *json.Decoder
	err bytes.Buffer
}

// told starts a process, which ends with the test at the latest.
func told(t *testing.T, o order) *other {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &other{cmd: exec.Command(self, "-test.run=^$")}
	p.cmd.Env = append(os.Environ(), variable+"="+string(text))
	p.cmd.Stderr = &p.err
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = json.NewDecoder(stdout)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		p.kill()
		_ = p.cmd.Wait() // how it ended was judged by what it said
	})
	return p
}

// hears returns the next news.
func (p *other) hears(t *testing.T) news {
	t.Helper()
	var n news
	if err := p.out.Decode(&n); err != nil {
		p.kill()
		_ = p.cmd.Wait() // so that all it complained of is there
		t.Fatalf("the other process ended: %v\n%s", err, &p.err)
	}
	if n.Err != "" {
		t.Fatal("in the other process: ", n.Err)
	}
	return n
}

// kill ends the process at once, as a crash does. It may be called again.
func (p *other) kill() { _ = p.cmd.Process.Kill() }

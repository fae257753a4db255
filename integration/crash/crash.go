// Package crash acquires a lease in another process, and kills that process while
// it holds the lease. The other process is the test program itself, started again:
//
//	func TestMain(m *testing.M) {
//		crash.Child(openStore) // returns at once, except in the other process
//		goleak.VerifyTestMain(m)
//	}
package crash

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/lockfx/lockfx"
)

const variable = "LOCKFX_CRASH_ORDER"

// order is what the child is told.
type order struct {
	Target string
	Key    string
	TTL    time.Duration
}

// report is what the child answers, in one line.
type report struct {
	Token lockfx.Token
	Err   string
}

// Open opens a store by what names it, say the address of a server and a prefix.
type Open func(ctx context.Context, target string) (lockfx.Store, error)

// Child returns at once in an ordinary process. In a process that [Acquire] started
// it acquires, reports, waits to be killed, and never returns.
func Child(open Open) {
	text, ok := os.LookupEnv(variable)
	if !ok {
		return
	}
	var o order
	token, err := lockfx.Token(0), json.Unmarshal([]byte(text), &o)
	if err == nil {
		token, err = acquire(o, open)
	}
	answer := report{Token: token}
	if err != nil {
		answer.Err = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
		os.Exit(1)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // ends when the parent does
	os.Exit(1)
}

func acquire(o order, open Open) (lockfx.Token, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	store, err := open(ctx, o.Target)
	if err != nil {
		return 0, err
	}
	g, err := store.Acquire(lockfx.WithLabel(ctx, "crash"), o.Key, o.TTL)
	if err == nil && !g.OK {
		err = errors.New("refused: held by " + g.HeldBy)
	}
	return g.Token, err
}

// Acquire starts the other process, which opens target and acquires key for ttl,
// kills it, and returns the token that it got. The process has ended by then.
func Acquire(ctx context.Context, target, key string, ttl time.Duration) (token lockfx.Token, err error) {
	text, err := json.Marshal(order{target, key, ttl})
	if err != nil {
		return 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, self, "-test.run=^$")
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	var complaint strings.Builder
	cmd.Stderr = &complaint
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	_ = cmd.Process.Kill() // here it crashes, holding the lease
	_ = stdin.Close()
	_ = cmd.Wait() // it was killed
	var answer report
	if err == nil {
		err = json.Unmarshal(line, &answer)
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("crash: the child gave no report: %w\n%s", err, complaint.String())
	case answer.Err != "":
		return 0, fmt.Errorf("crash: in the child: %s", answer.Err)
	}
	return answer.Token, nil
}

package redisstore

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// fakeServer answers renewals in this process: all of them succeed.
type fakeServer struct {
	takes  time.Duration // to answer a renewal
	silent atomic.Bool   // renewals get no answer
	dialed atomic.Int32
	asked  atomic.Int32 // renewals that arrived
	mute   atomic.Bool  // the next renewal of many gets no answer
}

// dial is a Dialer of a client.
func (f *fakeServer) dial(context.Context, string, string) (net.Conn, error) {
	f.dialed.Add(1)
	ours, theirs := net.Pipe()
	go f.serve(theirs)
	return ours, nil
}

func (f *fakeServer) serve(conn net.Conn) {
	defer conn.Close() //nolint:errcheck // the end of a connection of a test
	in := bufio.NewReader(conn)
	for {
		command, err := readCommand(in)
		if err != nil {
			return
		}
		reply := "+OK\r\n"
		switch strings.ToLower(command[0]) {
		case "hello":
			reply = "-ERR unknown command 'HELLO'\r\n"
		case "command":
			reply = "*1\r\n*6\r\n$7\r\nevalsha\r\n:-3\r\n*0\r\n:0\r\n:0\r\n:0\r\n"
		case "evalsha":
			f.asked.Add(1)
			if f.silent.Load() || command[2] != "1" && f.mute.CompareAndSwap(true, false) {
				_, _ = io.Copy(io.Discard, in) // until the client closes the connection
				return
			}
			time.Sleep(f.takes)
			var keys int
			_, _ = fmt.Sscan(command[2], &keys)
			reply = fmt.Sprintf("*%d\r\n%s", keys, strings.Repeat(":1\r\n", keys))
		}
		if _, err := io.WriteString(conn, reply); err != nil {
			return
		}
	}
}

func readCommand(in *bufio.Reader) ([]string, error) {
	var n int
	if _, err := fmt.Fscanf(in, "*%d\r\n", &n); err != nil {
		return nil, err
	}
	command := make([]string, n)
	for i := range command {
		var size int
		if _, err := fmt.Fscanf(in, "$%d\r\n", &size); err != nil {
			return nil, err
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(in, text); err != nil {
			return nil, err
		}
		command[i] = string(text[:size])
	}
	return command, nil
}

// storeOver returns a store whose client minds deadlines.
func storeOver(t *testing.T, server *fakeServer) *Store {
	t.Helper()
	client := redis.NewClient(&redis.Options{
		Addr: "fake:1", Dialer: server.dial, Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true,
	})
	t.Cleanup(func() { _ = client.Close() })
	store, err := New(client)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

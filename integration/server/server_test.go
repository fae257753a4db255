package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/lockfx/lockfx/integration/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func shell(t *testing.T, script string, ready func(context.Context) error) (*server.Process, error) {
	t.Helper()
	path, err := server.Find("sh")
	if err != nil {
		t.Fatal(err)
	}
	return server.Start(t.Context(), server.Command{Path: path, Args: []string{"-c", script}, Dir: t.TempDir(), Ready: ready})
}

func atOnce(context.Context) error { return nil }

func TestStopAndKillEndTheProcess(t *testing.T) {
	for name, end := range map[string]func(*server.Process){"stop": (*server.Process).Stop, "kill": (*server.Process).Kill} {
		p, err := shell(t, "exec sleep 600", atOnce)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-p.Exited():
			t.Errorf("%s: it ended by itself", name)
		default:
		}
		end(p)
		<-p.Exited()
		end(p)
	}
}

func TestAServerThatEndsEarlyIsAnErrorWithItsOutput(t *testing.T) {
	_, err := shell(t, "echo port is taken; exit 1", func(context.Context) error { return errors.New("no answer") })
	if err == nil || !strings.Contains(err.Error(), "port is taken") {
		t.Errorf("error %v, want one with the output of the server", err)
	}
}

func TestAMissingProgramIsAnErrorThatSaysWhatToDo(t *testing.T) {
	_, err := server.Find("no-such-server", "/no/such/folder/*")
	if err == nil || !strings.Contains(err.Error(), "scripts/install-servers.sh") {
		t.Errorf("error %v, want one that names the script", err)
	}
}

func TestAPausedServerGoesOn(t *testing.T) {
	p, err := shell(t, "exec sleep 600", atOnce)
	if err != nil {
		t.Fatal(err)
	}
	resume, err := p.Pause()
	if err != nil {
		t.Fatal(err)
	}
	resume()
	resume()
	p.Stop()
}

func TestPortsDiffer(t *testing.T) {
	ports, err := server.FreePorts(20)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, p := range ports {
		if seen[p] || p == 0 {
			t.Errorf("ports %v", ports)
		}
		seen[p] = true
	}
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/fx"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/examples/fxapp/nightly"
	"github.com/lockfx/lockfx/examples/fxapp/web"
	"github.com/lockfx/lockfx/fxlock"
)

// service is the program with -serve.
type service struct {
	t       *testing.T
	url     string
	client  *http.Client
	store   lockfx.Store
	dir     string
	stopNow context.CancelFunc
	ended   chan int      // the exit code
	stdout  *bytes.Buffer // to be read when told is closed
	told    chan struct{}
}

// startService starts the program and waits until it listens.
func startService(t *testing.T, args ...string) *service {
	t.Helper()
	transport := new(http.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	s := &service{
		t: t, store: memory(), dir: t.TempDir(), ended: make(chan int, 1), stdout: new(bytes.Buffer), told: make(chan struct{}),
		client: &http.Client{Transport: transport},
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.stopNow = cancel
	t.Cleanup(cancel)
	stdout, writer := io.Pipe()
	go func() {
		code := runOver(ctx, s.store, append([]string{"-serve", "127.0.0.1:0", "-out", s.dir}, args...), writer, writer)
		_ = writer.Close()
		s.ended <- code
	}()
	lines := bufio.NewReader(io.TeeReader(stdout, s.stdout))
	first, err := lines.ReadString('\n')
	_, url, found := strings.Cut(strings.TrimSpace(first), "listens on ")
	if err != nil || !found {
		t.Fatalf("first line %q, %v", first, err)
	}
	s.url = url
	go func() {
		defer close(s.told)
		_, _ = io.Copy(io.Discard, lines)
	}()
	t.Cleanup(func() { <-s.told })
	return s
}

// call sends a request and decodes the answer, if it is JSON, into a map.
func (s *service) call(ctx context.Context, method, path string) (status int, header http.Header, text string, fields map[string]any) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return 0, nil, err.Error(), nil
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, nil, err.Error(), nil
	}
	if response.Header.Get("Content-Type") == "application/json" {
		if err := json.Unmarshal(body, &fields); err != nil {
			s.t.Errorf("%s %s: %v in %q", method, path, err, body)
		}
	}
	return response.StatusCode, response.Header, string(body), fields
}

// lockUntil asks for the lock until its state is as wanted.
func (s *service) lockUntil(held bool) map[string]any {
	s.t.Helper()
	for {
		status, _, text, lock := s.call(s.t.Context(), http.MethodGet, "/lock")
		if status != http.StatusOK {
			s.t.Fatalf("status %d: %s", status, text)
		}
		if lock["held"] == held {
			return lock
		}
	}
}

// stop ends the service as a signal does.
func (s *service) stop() {
	s.t.Helper()
	s.stopNow()
	<-s.told
	if code := <-s.ended; code != exitOK {
		s.t.Errorf("exit code %d, stdout\n%s", code, s.stdout)
	}
	wantFree(s.t, s.store)
}

func TestServe(t *testing.T) {
	s, ctx := startService(t, "-pace", "0"), t.Context()
	report := filepath.Join(s.dir, "report.txt")

	if status, _, _, body := s.call(ctx, http.MethodGet, "/healthz"); status != http.StatusOK || body["status"] != "ok" {
		t.Errorf("health: %d, %v", status, body)
	}
	if status, _, _, body := s.call(ctx, http.MethodGet, "/report"); status != http.StatusNotFound || body["error"] == "" {
		t.Errorf("no report yet: %d, %v", status, body)
	}
	if status, _, text, _ := s.call(ctx, http.MethodGet, "/run"); status != http.StatusMethodNotAllowed {
		t.Errorf("GET /run: %d, %s", status, text)
	}
	_, _, _, lock := s.call(ctx, http.MethodGet, "/lock")
	if lock["state"] != "idle" || lock["held"] != false || lock["token"] != "0" || lock["lock"] != "nightly" || lock["key"] != "nightly" {
		t.Errorf("a new lock: %v", lock)
	}

	status, _, text, body := s.call(ctx, http.MethodPost, "/run")
	if status != http.StatusOK || body["report"] != report || body["requests"] != 3988.0 || body["malformed_lines"] != 12.0 {
		t.Errorf("run: %d, %s", status, text)
	}
	token, isString := body["token"].(string)
	if mark := readFile(t, report+".fence"); !isString || mark != token+"\n" {
		t.Errorf("token %v, mark %q", body["token"], mark)
	}
	if status, header, text, _ := s.call(ctx, http.MethodGet, "/report"); status != http.StatusOK ||
		text != readFile(t, report) || !strings.HasPrefix(header.Get("Content-Type"), "text/plain") {
		t.Errorf("report: %d, %v, %s", status, header, text)
	}
	if _, _, _, lock = s.call(ctx, http.MethodGet, "/lock"); lock["state"] != "released" || lock["held"] != false || lock["token"] != "0" {
		t.Errorf("after the run: %v", lock)
	}
	s.stop()
	if status, _, text, _ := s.call(ctx, http.MethodGet, "/healthz"); status != 0 {
		t.Errorf("after the stop: %d, %s", status, text)
	}
}

// While another replica holds the lease, a client learns who it is and for how long.
func TestServeWhileAnotherHoldsTheLease(t *testing.T) {
	s, ctx := startService(t), t.Context()
	grant, err := s.store.Acquire(lockfx.WithLabel(ctx, "replica-9"), lockName, time.Minute)
	if err != nil || !grant.OK {
		t.Fatal(grant, err)
	}
	status, header, text, body := s.call(ctx, http.MethodPost, "/run")
	if status != http.StatusConflict || body["held_by"] != "replica-9" || body["time_left"] == nil || header.Get("Retry-After") != "60" {
		t.Errorf("run: %d, %v, %s", status, header, text)
	}
	_, _, _, lock := s.call(ctx, http.MethodGet, "/lock")
	view, _ := lock["store"].(map[string]any)
	if lock["held"] != false || view["held"] != true || view["held_by"] != "replica-9" || view["token"] != grant.Token.String() {
		t.Errorf("lock: %v", lock)
	}
	if ok, err := s.store.Release(ctx, lockName, grant.Token); !ok || err != nil {
		t.Fatal(ok, err)
	}
	s.stop()
}

// A stop ends a report that is under way, and its client is told so.
func TestServeStopsInTheMiddleOfAReport(t *testing.T) {
	s, ctx := startService(t, "-pace", "1m"), t.Context()
	first := make(chan map[string]any, 1)
	go func() {
		status, _, text, body := s.call(ctx, http.MethodPost, "/run")
		if status != http.StatusServiceUnavailable {
			t.Errorf("the report that was stopped: %d, %s", status, text)
		}
		first <- body
	}()
	lock := s.lockUntil(true)
	view, _ := lock["store"].(map[string]any)
	if lock["state"] != "held" || lock["token"] != view["token"] || view["held_by"] != "replica-1" {
		t.Errorf("lock: %v", lock)
	}
	status, header, text, body := s.call(ctx, http.MethodPost, "/run")
	if status != http.StatusConflict || body["held_by"] != "replica-1" || body["time_left"] == nil || header.Get("Retry-After") == "" {
		t.Errorf("a second run: %d, %v, %s", status, header, text)
	}
	s.stop()
	body = <-first
	if text, _ := body["error"].(string); !strings.Contains(text, "disposed") {
		t.Errorf("the report that was stopped: %v", body)
	}
	for _, landmarks := range [][]string{ // the lease is there a moment before that is told
		{"holds the lease", "has released its lease", "has disposed of its lock", "the lease is free"},
		{"replica-1  stops", "has released its lease"},
	} {
		if _, err := follow(s.stdout.String(), landmarks); err != nil {
			t.Error(err)
		}
	}
}

func TestServeOnAnAddressThatIsTaken(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	got := runProgram(t.Context(), t, memory(), "-serve", listener.Addr().String(), "-out", t.TempDir())
	if got.code != exitFault || !strings.HasPrefix(got.stderr, "fxapp: serve HTTP: listen ") || strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("exit code %d, stderr %q", got.code, got.stderr)
	}
	if strings.Contains(got.stdout, "listens") {
		t.Errorf("stdout %q", got.stdout)
	}
}

// A connection that never sends a request holds nobody up.
func TestServeStopsBesideASilentConnection(t *testing.T) {
	s := startService(t)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	s.lockUntil(false) // by now the server has taken both connections
	s.stop()
	if !strings.Contains(s.stdout.String(), "has disposed of its lock") {
		t.Errorf("the lock was forgotten:\n%s", s.stdout)
	}
}

// A client that hangs up ends its report, and others need not wait.
func TestServeEndsTheReportOfAClientThatHangsUp(t *testing.T) {
	s := startService(t, "-pace", "1m")
	ctx, hangUp := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if status, _, text, _ := s.call(ctx, http.MethodPost, "/run"); status != 0 {
			t.Errorf("an answer: %d, %s", status, text)
		}
	}()
	s.lockUntil(true)
	hangUp()
	<-gone
	s.lockUntil(false)
	s.stop()
}

// The wiring is whole, also what a test of one mode would not reach.
func TestWiring(t *testing.T) {
	w := world{store: memory(), ttl: time.Second, log: func(context.Context) (fs.File, error) { return nil, fs.ErrNotExist }, out: &console{w: io.Discard}}
	w.logger = newLogger(false, io.Discard)
	var report nightly.Report
	if err := fxlock.Validate(w.replica("replica-1", lockfx.SystemClock()), fx.Populate(&report)); err != nil {
		t.Error(err)
	}
	if err := fxlock.Validate(w.replica("replica-1", lockfx.SystemClock()), fx.Supply(web.Config{}), web.Module); err != nil {
		t.Error(err)
	}
}

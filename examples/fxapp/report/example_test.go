package report_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/examples/fxapp/accesslog"
	"github.com/lockfx/lockfx/examples/fxapp/report"
)

func ExampleReport() {
	log := `192.0.2.7 - - [14/Mar/2026:09:26:53 +0100] "GET / HTTP/1.1" 200 524288
192.0.2.8 - - [14/Mar/2026:09:26:54 +0100] "GET /missing HTTP/1.1" 404 -
something else
192.0.2.7 - - [14/Mar/2026:09:59:01 +0100] "GET /?again HTTP/1.1" 200 524288
`
	r := report.New()
	stats, err := accesslog.Read(context.Background(), strings.NewReader(log), accesslog.Options{}, func(e accesslog.Entry) error {
		r.Add(e)
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var text strings.Builder
	if err := r.Render(&text, stats); err != nil {
		fmt.Println(err)
		return
	}
	summary, _, _ := strings.Cut(text.String(), "\nRequests by hour")
	_, rest, _ := strings.Cut(text.String(), "\nTop paths")
	fmt.Print(summary, "\nTop paths", rest)
	// Output:
	// Access report
	//   from         2026-03-14 09:26:53 +0100
	//   to           2026-03-14 09:59:01 +0100
	//   requests     3
	//   hosts        2
	//   bytes        1048576 (1.0 MiB)
	//   error rate   33.33% (4xx and 5xx)
	//   odd requests 0
	//   malformed    1 of 4 lines
	//
	// Status
	//   2   66.67%  2xx
	//   1   33.33%  4xx
	//
	// Top paths
	//   2   66.67%  /
	//   1   33.33%  /missing
	//
	// Top hosts
	//   2   66.67%  192.0.2.7
	//   1   33.33%  192.0.2.8
	//
	// Malformed lines
	//   line 3: no time in brackets
}

// A replica was paused with token 33. Meanwhile another took over with token 34.
func ExampleSink() {
	dir, err := os.MkdirTemp("", "report")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	sink, err := report.OpenSink(filepath.Join(dir, "report.txt"))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()

	fmt.Println("34:", sink.Write(ctx, 34, []byte("the new holder's report")))
	err = sink.Write(ctx, 33, []byte("the paused holder's report"))
	fmt.Println("33 is stale:", errors.Is(err, lockfx.ErrStaleToken))
	fmt.Println("mark:", sink.Mark())
	// Output:
	// 34: <nil>
	// 33 is stale: true
	// mark: 34
}

package accesslog_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/lockfx/lockfx/examples/fxapp/accesslog"
)

func ExampleParse() {
	e, err := accesslog.Parse(`2001:db8::7 - ada [14/Mar/2026:09:26:53 +0100] "GET /a?q=\"b\" HTTP/1.1" 200 5316 "-" "curl/8.6.0"`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Host, e.User, e.Method, e.Path, e.Status, e.Bytes, e.UserAgent)

	_, err = accesslog.Parse(`192.0.2.7 - - [14/Mar/2026:09:26:53 +0100] "GET / HTTP/1.1" 2x0 5316`)
	fmt.Println(err)
	// Output:
	// 2001:db8::7 ada GET /a?q="b" 200 5316 curl/8.6.0
	// status "2x0" is not three digits
}

func ExampleRead() {
	log := `192.0.2.7 - - [14/Mar/2026:09:26:53 +0100] "GET / HTTP/1.1" 200 5316
something else
192.0.2.8 - - [14/Mar/2026:09:26:54 +0100] "GET /missing HTTP/1.1" 404 -
`
	stats, err := accesslog.Read(context.Background(), strings.NewReader(log), accesslog.Options{
		Progress: func(lines, bytes int64) { fmt.Println("read", lines, "lines,", bytes, "bytes") },
	}, func(e accesslog.Entry) error {
		fmt.Println(e.Host, e.Path, e.Status)
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range stats.Samples {
		fmt.Printf("line %d: %s\n", m.Line, m.Reason)
	}
	// Output:
	// 192.0.2.7 / 200
	// 192.0.2.8 /missing 404
	// read 3 lines, 157 bytes
	// line 2: no time in brackets
}

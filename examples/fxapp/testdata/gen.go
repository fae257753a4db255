//go:build ignore

// Gen writes access.log: a day of a small web site in Combined Log Format. It is
// deterministic, and made up: all addresses are from the ranges kept for
// documentation.
//
//	go run gen.go > access.log
package main

import (
	"bufio"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"slices"
	"time"
)

const visits = 3_630 // requests of visitors; probes, a scan and odd lines come on top

var (
	random = rand.New(rand.NewPCG(20260314, 1))
	day    = time.Date(2026, time.March, 14, 0, 0, 0, 0, time.FixedZone("", 3600))
	// How busy each hour is, compared with the others.
	hours = []int{3, 2, 1, 1, 1, 2, 4, 8, 14, 18, 19, 17, 15, 17, 18, 17, 15, 13, 12, 13, 14, 12, 8, 5}
	// The backend is down for a while, and visitors see it.
	outageFrom, outageTo = day.Add(14*time.Hour + 20*time.Minute), day.Add(14*time.Hour + 38*time.Minute)
)

type page struct {
	path   string
	weight int
	size   int
	asset  bool
}

var pages = []page{
	{"/", 30, 8_400, false},
	{"/docs/", 16, 6_100, false},
	{"/docs/install", 14, 11_800, false},
	{"/docs/guide?page=2", 5, 14_200, false},
	{"/blog/", 8, 9_700, false},
	{"/blog/leases-and-clocks", 10, 21_300, false},
	{"/search?q=fencing+token", 4, 5_200, false},
	{"/search?q=%22exactly+once%22", 2, 4_900, false},
	{"/api/v1/items?limit=50", 12, 3_300, false},
	{"/downloads/handbook.pdf", 2, 1_843_200, false},
	{"/missing", 2, 0, false},
	{"/static/site.css", 24, 18_900, true},
	{"/static/app.js", 22, 64_300, true},
	{"/static/logo.svg", 18, 2_700, true},
	{"/favicon.ico", 9, 1_150, true},
}

var agents = []string{
	"Mozilla/5.0 (X11; Linux x86_64; rv:124.0) Gecko/20100101 Firefox/124.0",
	"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/123.0.0.0 Safari/537.36",
	"Mozilla/5.0 (Macintosh; Intel Mac OS X 14_4) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Safari/605.1.15",
	"Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148",
	"curl/8.6.0",
	"ExampleBot/2.1 (+https://example.com/bot)",
	`Handmade \"browser\" 0.3`,
}

var referers = []string{"-", "-", "https://example.com/", "https://example.com/docs/", "https://www.example.com/search?q=locks"}

type record struct {
	at   time.Time
	text string
}

func main() {
	var records []record
	add := func(at time.Time, host, user, request string, status, size int, referer, agent string) {
		written := fmt.Sprint(size)
		if size == 0 {
			written = "-"
		}
		records = append(records, record{at, fmt.Sprintf(`%s - %s [%s] "%s" %d %s "%s" "%s"`,
			host, user, at.Format("02/Jan/2006:15:04:05 -0700"), request, status, written, referer, agent)})
	}
	for range visits {
		visit(add)
	}
	for at := day.Add(12 * time.Second); at.Before(day.AddDate(0, 0, 1)); at = at.Add(5 * time.Minute) {
		add(at, "2001:db8:0:1::53", "-", "GET /healthz HTTP/1.1", 200, 3, "-", "probe/1.0")
	}
	scan(add)
	odd(add)
	slices.SortStableFunc(records, func(a, b record) int { return a.at.Compare(b.at) })

	out := bufio.NewWriter(os.Stdout)
	broken := malformed()
	step := len(records) / len(broken)
	for i, r := range records {
		if i%step == step/2 && len(broken) > 0 {
			fmt.Fprintln(out, broken[0])
			broken = broken[1:]
		}
		fmt.Fprintln(out, r.text)
	}
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
}

type adder func(at time.Time, host, user, request string, status, size int, referer, agent string)

func visit(add adder) {
	hour := pick(hours)
	at := day.Add(time.Duration(hour)*time.Hour + time.Duration(random.IntN(3600))*time.Second)
	visitor := int(random.Float64() * random.Float64() * 240) // some come much more often
	host, agent := address(visitor), agents[visitor*3%len(agents)]
	if random.IntN(60) == 0 {
		login(add, at, host, agent)
		return
	}
	weights := make([]int, len(pages))
	for i, p := range pages {
		weights[i] = p.weight
	}
	p := pages[pick(weights)]
	status, size := 200, p.size+random.IntN(p.size/20+1)
	switch {
	case p.path == "/missing":
		status, size = 404, 512
	case !p.asset && at.After(outageFrom) && at.Before(outageTo):
		status, size = 502+random.IntN(2), 160
	case p.asset && random.IntN(3) == 0:
		status, size = 304, 0
	case p.size > 1_000_000 && random.IntN(2) == 0:
		status, size = 206, 65_536
	case random.IntN(400) == 0:
		status, size = 500, 240
	}
	referer := referers[random.IntN(len(referers))]
	if p.asset {
		referer = "https://example.com/"
	}
	add(at, host, "-", "GET "+p.path+" HTTP/"+version(visitor), status, size, referer, agent)
}

func login(add adder, at time.Time, host, agent string) {
	user := []string{"ada", "grace", "edsger", "Barbara L"}[random.IntN(4)]
	if random.IntN(4) == 0 {
		add(at, host, "-", "POST /login HTTP/1.1", 401, 190, "https://example.com/login", agent)
		return
	}
	add(at, host, user, "GET /admin/reports HTTP/1.1", 200, 7_300, "https://example.com/login", agent)
}

// scan is one host that looks for holes, in the small hours.
func scan(add adder) {
	at := day.Add(3*time.Hour + 17*time.Minute)
	for i := range 60 {
		add(at.Add(time.Duration(i/4)*time.Second), "203.0.113.250", "-",
			fmt.Sprintf("GET /%s/%s HTTP/1.1", []string{"old", "backup", "cgi-bin", "test"}[i%4], []string{"setup.php", "config.bak", ".env"}[i%3]),
			404, 512, "-", "-")
	}
}

// odd are proper lines about improper requests.
func odd(add adder) {
	at := func(hour, minute int) time.Time {
		return day.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
	}
	add(at(1, 3), "198.51.100.201", "-", `\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03`, 400, 150, "-", "-")
	add(at(2, 41), "198.51.100.202", "-", "-", 408, 0, "-", "-")
	add(at(5, 12), "2001:db8:dead::1", "-", "", 400, 0, "-", "-")
	add(at(6, 55), "198.51.100.203", "-", `GET /search?q=\"a b\" HTTP/1.1`, 400, 150, "-", `odd\\agent`)
	add(at(9, 30), "203.0.113.199", "-", "GET /", 400, 150, "-", "-")
	add(at(11, 8), "203.0.113.198", "-", "PROPFIND /dav HTTP/1.1", 405, 150, "-", "-")
	add(at(15, 44), "198.51.100.204", "-", `GET /caf\xC3\xA9 HTTP/1.1`, 404, 512, "-", "-")
	add(at(18, 20), "198.51.100.205", "-", `GET /\x1B[2Jhello HTTP/1.1`, 400, 150, "-", "-")
	add(at(21, 2), "203.0.113.197", "-", "CONNECT example.com:443 HTTP/1.1", 405, 150, "-", "-")
	add(at(22, 37), "203.0.113.196", "-", "GET /slow HTTP/1.1", 499, 0, "-", "-")
}

// malformed are lines as a full disk, a crash, a mixed-up configuration and a
// careless edit leave them.
func malformed() []string {
	const stamp = "[14/Mar/2026:12:00:00 +0100]"
	return []string{
		`192.0.2.14 - - ` + stamp + ` "GET /static/app`,
		`2026/03/14 03:40:11 [error] 7#7: *91 upstream timed out while reading, client: 192.0.2.9`,
		``,
		`192.0.2.15 - - ` + stamp + ` "GET / HTTP/1.1" 2x0 8400 "-" "-"`,
		`192.0.2.16 - - ` + stamp + ` "GET / HTTP/1.1" 200 8.4k "-" "-"`,
		`192.0.2.17 - - [2026-03-14T12:00:00Z] "GET / HTTP/1.1" 200 8400 "-" "-"`,
		`192.0.2.18 - - [31/Feb/2026:12:00:00 +0100] "GET / HTTP/1.1" 200 8400 "-" "-"`,
		`192.0.2.19 - - ` + stamp + ` GET / HTTP/1.1 200 8400 - -`,
		`{"time":"2026-03-14T12:00:00+01:00","host":"192.0.2.20","status":200}`,
		`192.0.2.21 - - ` + stamp + ` "GET /?q="quoted" HTTP/1.1" 200 8400 "-" "-"`,
		`192.0.2.22 - - ` + stamp + ` "GET / HTTP/1.1" 200 8400 "https://example.com/`,
		` - - ` + stamp + ` "GET / HTTP/1.1" 200 8400 "-" "-"`,
	}
}

// address gives visitor n an address of its own.
func address(n int) string {
	switch n % 5 {
	case 0:
		return fmt.Sprintf("2001:db8:%x::%x", n%15+1, n+1)
	case 1, 2:
		return fmt.Sprintf("192.0.2.%d", n%190+1)
	case 3:
		return fmt.Sprintf("198.51.100.%d", n%190+1)
	default:
		return fmt.Sprintf("203.0.113.%d", n%190+1)
	}
}

func version(visitor int) string {
	if visitor%3 == 0 {
		return "1.1"
	}
	return "2.0"
}

// pick draws an index, each as often as its weight says.
func pick(weights []int) int {
	total := 0
	for _, w := range weights {
		total += w
	}
	n := random.IntN(total)
	for i, w := range weights {
		if n < w {
			return i
		}
		n -= w
	}
	panic("unreachable: the weights sum to total")
}

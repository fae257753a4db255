package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/lockfx/lockfx/examples/fxapp/accesslog"
)

const (
	topRows   = 10 // rows in the tables of hosts and paths
	barLength = 40 // of the busiest hour
	nameRunes = 60 // a longer name is cut
)

// Render writes the report as text for people, in one call of w.Write. The same
// entries and stats give the same text. stats are those of the reading that the
// entries came from. An error is that of w.
func (r *Report) Render(w io.Writer, stats accesslog.Stats) error {
	var p printer
	p.line("Access report")
	p.summary(r, stats)
	p.table("Status", r.statuses(), r.requests)
	p.chart("Requests by hour of day", r.hours[:])
	p.table("Top paths", r.paths.top(topRows), r.requests)
	p.table("Top hosts", r.hosts.top(topRows), r.requests)
	p.malformed(stats)
	if _, err := w.Write(p.text); err != nil {
		return fmt.Errorf("render report: %w", err)
	}
	return nil
}

func (r *Report) statuses() []count {
	var counts []count
	for class, n := range r.classes {
		if n > 0 {
			counts = append(counts, count{strconv.Itoa(class) + "xx", n})
		}
	}
	return counts
}

// printer collects lines; nothing in it can fail.
type printer struct{ text []byte }

func (p *printer) line(format string, args ...any) {
	p.text = fmt.Appendf(p.text, format+"\n", args...)
}

func (p *printer) title(title string) { p.line("\n%s", title) }

func (p *printer) summary(r *Report, stats accesslog.Stats) {
	field := func(name, format string, args ...any) {
		p.line("  %-13s"+format, append([]any{name}, args...)...)
	}
	if r.requests > 0 {
		field("from", "%s", r.first.Format(stamp))
		field("to", "%s", r.last.Format(stamp))
	}
	field("requests", "%d", r.requests)
	field("hosts", "%d", len(r.hosts))
	field("bytes", "%d (%.1f MiB)", r.bytes, float64(r.bytes)/(1<<20))
	field("error rate", "%s (4xx and 5xx)", strings.TrimSpace(percent(r.errors(), r.requests)))
	field("odd requests", "%d", r.odd)
	field("malformed", "%d of %d lines", stats.Malformed, stats.Lines)
}

const stamp = time.DateTime + " -0700"

func (p *printer) table(title string, rows []count, total int64) {
	if len(rows) == 0 {
		return
	}
	p.title(title)
	width := widest(rows)
	for _, row := range rows {
		p.line("  %*d  %s  %s", width, row.n, percent(row.n, total), printable(row.name))
	}
}

// chart draws all of hours, or nothing if all are 0.
func (p *printer) chart(title string, hours []int64) {
	rows := make([]count, len(hours))
	var busiest int64
	for hour, n := range hours {
		rows[hour] = count{fmt.Sprintf("%02d", hour), n}
		busiest = max(busiest, n)
	}
	if busiest == 0 {
		return
	}
	p.title(title)
	width := widest(rows)
	for _, row := range rows {
		bar := strings.Repeat("#", int((row.n*barLength+busiest-1)/busiest))
		p.line("%s", strings.TrimRight(fmt.Sprintf("  %s  %*d  %s", row.name, width, row.n, bar), " "))
	}
}

func (p *printer) malformed(stats accesslog.Stats) {
	if stats.Malformed == 0 {
		return
	}
	p.title("Malformed lines")
	for _, m := range stats.Samples {
		p.line("  line %d: %s", m.Line, m.Reason)
	}
	if more := stats.Malformed - int64(len(stats.Samples)); more > 0 {
		p.line("  and %d more", more)
	}
}

// widest returns how many digits the greatest count has.
func widest(rows []count) int {
	width := 0
	for _, row := range rows {
		width = max(width, len(strconv.FormatInt(row.n, 10)))
	}
	return width
}

// percent returns part of total in seven columns.
func percent(part, total int64) string {
	if total == 0 {
		return "   none"
	}
	return fmt.Sprintf("%6.2f%%", 100*float64(part)/float64(total))
}

// printable returns name as it can be shown on any terminal: what a client sends
// must not move the cursor of who reads about it.
func printable(name string) string {
	runes := []rune(name)
	if len(runes) > nameRunes {
		name = string(runes[:nameRunes]) + "..."
	}
	quoted := strconv.Quote(name)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

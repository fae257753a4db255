package runscope

import (
	"bytes"
	"runtime"
	"strconv"
)

// goroutine returns the number of the calling goroutine, or 0 if it can't be told.
// The runtime offers no other way than the head of a stack trace. It is used for
// one thing: to refuse a call that would wait for itself.
func goroutine() uint64 {
	var buf [64]byte
	head := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	digits, _, _ := bytes.Cut(head, []byte(" "))
	n, _ := strconv.ParseUint(string(digits), 10, 64)
	return n
}

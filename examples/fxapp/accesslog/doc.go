// Package accesslog reads the access logs of web servers: the Combined Log
// Format of Apache httpd and nginx, and the Common Log Format that it extends.
//
//	192.0.2.7 - ada [14/Mar/2026:09:26:53 +0100] "GET /a?b=1 HTTP/1.1" 200 5316 "https://example.com/" "curl/8.5"
//	└ Host    │ └ User └ Time                     └ Request             │   └ Bytes └ Referer          └ UserAgent
//	          └ Ident                                                   └ Status
//
// [Parse] reads one line. [Read] reads a whole log, line by line, in bounded
// memory: it hands on each entry, counts the lines that are none, keeps the
// first few of them as samples, and stops soon after its context ends.
package accesslog

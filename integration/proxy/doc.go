// Package proxy is a TCP proxy of this process that does to connections what
// networks do: it drops them, swallows what they carry, swallows only the answers,
// holds it back for a while, or delays it.
//
//	client ──▶ Proxy.Addr ──▶ target
package proxy

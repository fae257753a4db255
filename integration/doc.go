// Package integration starts real servers and runs the stores of lockfx over them.
// It is a module of its own, never published, so that no published module requires a
// server or the client of another store.
//
//	server        starts, stops, kills and pauses one server process
//	proxy         a TCP proxy that loses, holds and delays what passes
//	crash         acquires in another process and kills that process
//	redisserver   Redis in the shapes that the tests need; likewise for other engines
//	redis         the tests over Redis; likewise for other engines
//	waiting       what waiting and leading cost over all of them
package integration

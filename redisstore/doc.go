// Package redisstore is the lockfx.Store over Redis 6.2 and newer, and Valkey: a
// single server, sentinel, or a cluster.
package redisstore

// Package pgstore is the lockfx.Store over PostgreSQL.
package pgstore

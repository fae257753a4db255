package filestore_test

import (
	"testing"
	"time"

	"github.com/lockfx/lockfx/filestore"
	"github.com/lockfx/lockfx/storetest"
)

// On a disk, where synchronization is what counts.
func BenchmarkDisk(b *testing.B) { benchmark(b, func() string { return b.TempDir() }) }

// In memory, if there is such a place.
func BenchmarkMemory(b *testing.B) { benchmark(b, func() string { return newDir(b) }) }

func benchmark(b *testing.B, dir func() string) {
	storetest.Bench(b, func() (*storetest.Harness, error) {
		s, err := filestore.New(dir())
		return &storetest.Harness{
			Store: s, TTL: time.Minute, Resolution: time.Millisecond,
			Close: func() { _ = s.Close(ctx) },
		}, err
	})
}

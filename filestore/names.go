package filestore

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	markName    = "mark.json"
	leasePrefix = "lease-"
	leaseSuffix = ".json"
	tempSuffix  = ".tmp"

	// stripes is how many guard files the keys share, one for each first digit of a
	// key's hash. Keys that share one take turns for some milliseconds, no more, so
	// few are enough; and as there is a fixed number, no key leaves one behind.
	stripes = 16
	// markGuard is the number of the guard of the mark.
	markGuard = stripes

	maxReadable = 40
	hexDigits   = "0123456789abcdef"
)

// leaseName returns the name of the record of key: a part that people can read, and
// the full hash, by which no two keys share a file. Only characters that every file
// system takes as they are get into the readable part.
func leaseName(key string) string {
	sum := sha256.Sum256([]byte(key))
	readable := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return '_'
	}, key[:min(len(key), maxReadable)])
	return leasePrefix + readable + "-" + hex.EncodeToString(sum[:]) + leaseSuffix
}

// stripeOf returns the number of the guard of the record, or of its temporary file,
// with this name. It is false for other names.
func stripeOf(name string) (stripe int, ok bool) {
	name = strings.TrimSuffix(name, tempSuffix)
	stem, ok := strings.CutSuffix(name, leaseSuffix)
	if !ok || !strings.HasPrefix(stem, leasePrefix) {
		return 0, false
	}
	hash := stem[strings.LastIndexByte(stem, '-')+1:]
	if len(hash) != hex.EncodedLen(sha256.Size) {
		return 0, false
	}
	stripe = strings.IndexByte(hexDigits, hash[0])
	return stripe, stripe >= 0
}

// guardName returns the name of a guard file: guard-0 to guard-f, and guard-mark.
func guardName(guard int) string {
	if guard == markGuard {
		return "guard-mark"
	}
	return "guard-" + hexDigits[guard:guard+1]
}

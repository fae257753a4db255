package lockfx

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxKeyLen is the length of the longest key, in bytes.
const MaxKeyLen = 512

// CheckKey returns nil if every store takes key: any non-empty UTF-8 string
// without NUL, up to [MaxKeyLen] bytes. Otherwise the error matches [ErrConfig]
// and names the rule.
func CheckKey(key string) error {
	var rule string
	switch {
	case key == "":
		rule = "must not be empty"
	case len(key) > MaxKeyLen:
		rule = fmt.Sprintf("has %d bytes; at most %d are allowed", len(key), MaxKeyLen)
		key = strings.ToValidUTF8(key[:32], "") + "..."
	case !utf8.ValidString(key):
		rule = "must be valid UTF-8"
	case strings.IndexByte(key, 0) >= 0:
		rule = "must not contain NUL"
	default:
		return nil
	}
	return fmt.Errorf("%w: key %q %s", ErrConfig, key, rule)
}

// CheckTTL returns nil if ttl is a lease that a store of the given resolution can
// keep. A ttl is refused rather than rounded to zero: a lease of zero would be
// gone at once, or stay for ever. Otherwise the error matches [ErrConfig].
func CheckTTL(ttl, resolution time.Duration) error {
	switch {
	case ttl <= 0:
		return fmt.Errorf("%w: ttl %v must be greater than 0", ErrConfig, ttl)
	case ttl < resolution:
		return fmt.Errorf("%w: ttl %v is below the store's resolution of %v", ErrConfig, ttl, resolution)
	}
	return nil
}

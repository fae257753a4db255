package layered

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

const prefixLen = 32

// fileName returns the name of a key's lock file: a prefix for people, and a full
// hash, since prefixes can be equal.
func fileName(namespace, key string) string {
	buf := make([]byte, 0, 1+prefixLen+1+2*sha256.Size)
	if key == "" || key[0] == '.' || key[0] == '-' {
		buf = append(buf, '_')
	}
	for _, c := range []byte(key[:min(len(key), prefixLen)]) {
		if strings.IndexByte(plain, c) < 0 {
			c = '_'
		}
		buf = append(buf, c)
	}
	// The length keeps ("a", "bc") and ("ab", "c") apart.
	sum := sha256.Sum256([]byte(strconv.Itoa(len(namespace)) + ":" + namespace + key))
	return string(hex.AppendEncode(append(buf, '-'), sum[:]))
}

// plain are the characters of a key that a file name shows as they are.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."

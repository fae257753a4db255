package filestore

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lockfx/lockfx"
)

// ErrCorrupt says that a file of the store is not what the store wrote: cut off,
// changed, or of another key. The key can't be acquired until somebody decides about
// it; the package documentation says how.
var ErrCorrupt = errors.New("corrupt file")

const (
	leaseFormat = "lockfx lease 1"
	markFormat  = "lockfx mark 1"
)

// record is what the directory knows about a key. The zero record says that the key
// is not known, or was not used for long.
type record struct {
	Key      string       `json:"key"`
	Held     bool         `json:"held"`            // false once it was given back
	Token    lockfx.Token `json:"token,string"`    // a string, since programs that read numbers as floats lose digits
	Previous lockfx.Token `json:"previous,string"` // the last one of this key before Token, or 0
	Label    string       `json:"holder"`
	Ends     time.Time    `json:"ends"` // when the lease expires, or was given back
}

// liveAt reports whether r is an unexpired lease.
func (r record) liveAt(now time.Time) bool { return r.Held && now.Before(r.Ends) }

// freed returns r after the end of its lease at now.
func (r record) freed(now time.Time) record {
	r.Held, r.Ends = false, wall(now)
	return r
}

// mark is what the directory knows apart from any key.
type mark struct {
	Token   lockfx.Token `json:"token,string"` // no greater one was ever issued in this directory
	SweepAt time.Time    `json:"sweep_at"`     // when to look for records that nobody needs
}

// envelope is a file of the store: what it says, in which format, and the checksum of
// the same envelope without a checksum.
type envelope[T any] struct {
	Format  string `json:"format"`
	Content T      `json:"content"`
	SHA256  string `json:"sha256"`
}

// seal returns the bytes of a file. The same content always gives the same bytes.
func seal[T any](format string, content T) ([]byte, error) {
	e := envelope[T]{Format: format, Content: content}
	bare, err := encode(e)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(bare)
	e.SHA256 = hex.EncodeToString(sum[:])
	return encode(e)
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}

// unseal returns the content of a file. It accepts exactly the bytes that [seal]
// makes: whatever JSON would let pass, such as a field that is there twice, does not
// survive being sealed again. An error matches [ErrCorrupt].
func unseal[T any](format string, data []byte) (content T, err error) {
	var e envelope[T]
	if err := json.Unmarshal(data, &e); err != nil {
		return content, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if e.Format != format {
		return content, fmt.Errorf("%w: its format is %q; this version reads %q", ErrCorrupt, e.Format, format)
	}
	again, err := seal(format, e.Content)
	if err != nil {
		return content, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if !bytes.Equal(again, data) {
		return content, fmt.Errorf("%w: the checksum does not match", ErrCorrupt)
	}
	return e.Content, nil
}

// wall returns t as it is kept in files: without the monotonic reading, which means
// nothing to another process.
func wall(t time.Time) time.Time { return t.UTC().Round(0) }

// maxLabel is the length to which labels are cut, in bytes. They are for people.
const maxLabel = 1024

func storable(label string) string {
	return strings.ToValidUTF8(label[:min(len(label), maxLabel)], "")
}

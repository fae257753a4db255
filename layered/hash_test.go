package layered

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/lockfx/lockfx"
)

func mustHash(t *testing.T, in any) string {
	t.Helper()
	key, err := hashInput(in)
	must(t, err)
	return key
}

// The canonical form is part of the contract: processes of different versions have to
// agree on it.
func TestHash_IsOfTheInputsJSON(t *testing.T) {
	type in struct {
		A    int
		B    map[string]int
		Skip func() `json:"-"`
	}
	a := mustHash(t, in{1, map[string]int{"x": 1, "y": 2}, nil})
	for range 100 {
		if mustHash(t, &in{1, map[string]int{"y": 2, "x": 1}, func() {}}) != a {
			t.Fatal("the hash is not stable")
		}
	}
	if want := "c90c1da4b05e2f5df8649fbbc38aa7bb03799247b86c45221a1edcd44ea42fcf"; a != want {
		t.Errorf("key %q, want the SHA-256 of the input in JSON, %q", a, want)
	}
	if mustHash(t, in{2, nil, nil}) == a || mustHash(t, time.Unix(1, 0).UTC()) == mustHash(t, time.Unix(2, 0).UTC()) {
		t.Error("different inputs have one key")
	}
}

type (
	hidden struct{ a int }
	id     int
	self   struct{ time.Time }
	one    struct{ X int }
	other  struct{ X int }
	left   struct{ X int }
	right  struct{ X int }
	deeper struct{ left }
	again  struct {
		*again
		X int
	}

	folded   struct{ name string } // writes itself without regard to case
	number   int                   // writes itself
	atHome   struct{ N int }       // writes itself where it has an address
	octet    byte                  // writes itself
	maybe    struct{ N int }       // says itself whether it is zero
	wordsOut struct{ N int }       // writes itself
	title    string                // writes itself, and not as a key
)

func (f folded) MarshalText() ([]byte, error)   { return []byte(strings.ToLower(f.name)), nil }
func (number) MarshalText() ([]byte, error)     { return []byte("n"), nil }
func (*atHome) MarshalJSON() ([]byte, error)    { return []byte("1"), nil }
func (octet) MarshalText() ([]byte, error)      { return []byte("o"), nil }
func (maybe) IsZero() bool                      { return true }
func (title) MarshalText() ([]byte, error)      { return []byte("p"), nil }
func (w wordsOut) MarshalJSON() ([]byte, error) { return fmt.Append(nil, time.Now().UnixNano()), nil }

func TestHash_TakesWhatIsWrittenWholeAndTheSameEachTime(t *testing.T) {
	utc := time.Unix(1, 0).UTC()
	link, err := url.Parse("https://example.org/a?b=c")
	must(t, err)
	for _, in := range []any{
		nil, "", 1, 1.5, true, []byte("a"),
		[2]int{1, 2},
		map[int]string{1: "a"},
		json.Number("1"),
		map[title]int{"a": 1, "b": 2},
		struct{ one }{one{1}},
		struct{ *one }{nil},
		struct {
			one `json:"one"`
			X   int
		}{},
		struct {
			X int
			other
			Y int `json:"-"`
		}{}.other,
		utc, &utc, (*time.Time)(nil),
		struct {
			At time.Time `json:",omitzero"`
			X  int
		}{},
		netip.MustParseAddr("::1"), netip.MustParseAddrPort("1.2.3.4:5"), netip.MustParsePrefix("10.0.0.0/8"),
		map[string]any{"link": link.Host, "nested": []any{map[string]any{"a": 1}}},
	} {
		key := mustHash(t, in)
		if again := mustHash(t, in); again != key {
			t.Errorf("%T: two keys", in)
		}
	}
}

func TestHash_RefusesWhatIsNot(t *testing.T) {
	type cycle struct{ Next *cycle }
	round := &cycle{}
	round.Next = round
	now := time.Now()
	five, alsoFive := big.NewInt(5), big.NewInt(5)
	for rule, ins := range map[string][]any{
		"json: unsupported": {
			func() {}, make(chan int), math.NaN(), math.Inf(1),
			[]float64{math.NaN()},
			round,
			struct{ F func() }{},
			map[bool]int{true: 1},
			complex(1, 1),
		},
		"unexported field": {hidden{1}, []any{hidden{}}, map[string]any{"k": &hidden{}}, struct{ In hidden }{}, struct{ hidden }{}, struct{ id }{1}},
		"not valid UTF-8":  {"\xff", map[string]int{"\xff": 1}, struct{ A []string }{[]string{"\xff"}}},
		"two fields that JSON calls X": {
			struct {
				one
				other
			}{},
			struct {
				*one
				X int
			}{one: &one{}},
			struct {
				A int
				other
				B int `json:"X"`
			}{},
			struct { // neither is written, whichever is there
				*left
				*right
			}{nil, &right{1}},
			struct {
				deeper
				right
			}{},
			struct { // a name that is not fit for JSON is none
				X int `json:"a€"`
				Y int `json:"X"`
			}{},
		},
		"embeds itself": {again{again: &again{X: 1}}},
		// It may be written alike for different inputs, or differently for one.
		"writes itself": {
			folded{"a"},
			&folded{"a"}, number(1),
			wordsOut{1},
			[]any{wordsOut{}},
			map[string]any{"a": folded{}},
			title("a"),
			atHome{1},
			&atHome{1},
			[]atHome{{1}},
			struct{ A atHome }{},
			[]octet{1},
			[2]octet{1, 2},
			*big.NewInt(1), big.NewInt(1), json.RawMessage("{}"),
			self{time.Now()},
			struct {
				time.Time
				X int
			}{time.Now(), 1},
			&struct {
				*time.Time
				X int
			}{new(time.Time), 1},
			&struct {
				big.Int
				X int
			}{X: 1},
			struct { // both write themselves, so neither does for both
				time.Time
				netip.Addr
			}{},
		},
		"write themselves": {
			map[folded]int{{"Key"}: 1, {"key"}: 2},
			map[number]int{1: 1, 2: 2},
			map[*big.Int]int{five: 1, alsoFive: 2},
			map[time.Time]int{},
			map[netip.Addr]int{},
			struct{ M map[folded]int }{},
		},
		"IsZero": {struct {
			M maybe `json:"m,omitzero"`
		}{}},
		"local zone": {now, struct{ At *time.Time }{&now}},
	} {
		for _, in := range ins {
			key, err := hashInput(in)
			if err == nil || !strings.Contains(err.Error(), rule) {
				t.Errorf("%T has the key %q, %v; want an error with %q", in, key, err, rule)
			}
		}
	}
}

// One input, and no exclusion: the order of such a map is another one each time.
func TestHash_UnstableInputAsksForAKey(t *testing.T) {
	in := map[folded]int{{"Key"}: 1, {"key"}: 2}
	_, err := WithLock(t.Context(), in, nothing[map[folded]int])
	if !errors.Is(err, lockfx.ErrConfig) || !strings.Contains(err.Error(), "layered.WithKey: is required, since the input has no stable hash: ") {
		t.Errorf("err = %v", err)
	}
	_, err = WithLock(t.Context(), in, nothing[map[folded]int], WithKey("k"), onlyIn(LayerMemory))
	must(t, err)
}

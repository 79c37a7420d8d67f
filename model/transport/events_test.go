package transport

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// The rules of the HTML standard for event streams, and what servers do beyond them.
func TestEvents(t *testing.T) {
	tests := map[string]struct {
		stream string
		want   []string
	}{
		"events":                      {"data: {\"a\":1}\n\ndata: {\"a\":2}\n\n", []string{`{"a":1}`, `{"a":2}`}},
		"data on several lines":       {"data: {\"a\":\ndata: 1\ndata:}\n\n", []string{"{\"a\":\n1\n}"}},
		"CRLF":                        {"data: {\"a\":\r\ndata: 1}\r\n\r\ndata: 2\r\n\r\n", []string{"{\"a\":\n1}", "2"}},
		"CR":                          {"data: {\"a\":\rdata: 1}\r\rdata: 2\r\r", []string{"{\"a\":\n1}", "2"}},
		"a byte order mark":           {"\ufeffdata: 1\n\n", []string{"1"}},
		"comments and other fields":   {": ping\nevent: x\nid: 7\nretry: 5\ndata: 1\n\n:\n\n", []string{"1"}},
		"no space":                    {"data:1\n\n", []string{"1"}},
		"a field without a colon":     {"data\n\ndata: 1\n\n", []string{"1"}},
		"another field":               {"database: 1\ndata: 2\n\n", []string{"2"}},
		"no blank line":               {"data: {\"a\":1}\ndata: {\"a\":2}\ndata: [DONE]\n", []string{`{"a":1}`, `{"a":2}`, "[DONE]"}},
		"no end":                      {"data: {\"a\":1}", []string{`{"a":1}`}},
		"a colon in the data":         {"data: {\"a\": \"data: b\"}\n\n", []string{`{"a": "data: b"}`}},
		"a comment between two lines": {"data: {\n: ping\ndata: }\n\n", []string{"{\n}"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, in := range []io.Reader{strings.NewReader(test.stream), iotest.OneByteReader(strings.NewReader(test.stream))} {
				var got []string
				for data, err := range Events(in) {
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, string(data))
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			}
		})
	}
}

// An event is read before more of the stream arrives, also if its lines end with CR.
func TestEventsAtOnce(t *testing.T) {
	broken := errors.New("broken")
	for _, stream := range []string{"data: 1\n\n", "data: 1\r\r"} {
		var got []string
		for data, err := range Events(io.MultiReader(strings.NewReader(stream), iotest.ErrReader(broken))) {
			if err != nil {
				break
			}
			got = append(got, string(data))
		}
		if len(got) != 1 {
			t.Errorf("%q: events %q before the end", stream, got)
		}
	}
}

func TestNumbers(t *testing.T) {
	for given, want := range map[string]int64{
		"50": 50, "50.0": 50, `"50"`: 50, "5e1": 50, "-1": 0, "1e300": 1 << 40, "null": 0, "true": 0, `"x"`: 0, "{}": 0, "[1]": 0, `"NaN"`: 0,
	} {
		var n struct{ N Number }
		if err := Unmarshal([]byte(`{"n":`+given+`}`), &n); err != nil || n.N.Tokens() != want {
			t.Errorf("%s is %d (%v), want %d", given, n.N.Tokens(), err, want)
		}
	}
}

package logs_test

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/minibench/mini/runner/grade/logs"
)

func TestText(t *testing.T) {
	for name, c := range map[string]struct{ raw, want string }{
		"empty":                {"", ""},
		"plain":                {"a\nb", "a\nb"},
		"crlf":                 {"a\r\nb\r\n", "a\nb\n"},
		"lone cr":              {"a\rb\r", "a\nb\n"},
		"two cr and a newline": {"\r\r\n\n", "\n\n\n"},
		"other line ends stay": {"a\vb\fc\u0085d\u2028e", "a\vb\fc\u0085d\u2028e"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := logs.Decode([]byte(c.raw))
			if err != nil || got != c.want {
				t.Errorf("the text is %q, %v; want %q", got, err, c.want)
			}
			// A CR and its LF, and the bytes of a character, come from different reads.
			got, err = logs.DecodeReader(iotest.OneByteReader(strings.NewReader(c.raw)), 0)
			if err != nil || got != c.want {
				t.Errorf("byte by byte the text is %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestTextRefusesInvalidUTF8(t *testing.T) {
	for _, raw := range []string{"a\xff", "\xed\xa0\x80", "\xe2\x82", "\xc0\x80"} {
		if _, err := logs.Decode([]byte(raw)); !errors.Is(err, logs.ErrNotUTF8) {
			t.Errorf("%q: the error is %v, want ErrNotUTF8", raw, err)
		}
	}
}

func TestReadPassesErrorsOn(t *testing.T) {
	broken := errors.New("broken")
	if _, err := logs.DecodeReader(iotest.ErrReader(broken), 0); !errors.Is(err, broken) {
		t.Errorf("the error is %v, want the reader's", err)
	}
}

// TestValid has examples such as those of Unicode's chapter 3.9 (tables 3-8 to 3-11). Python's
// bytes.decode("utf-8", "replace") has the same results.
func TestValid(t *testing.T) {
	for raw, want := range map[string]string{
		"plain é": "plain é",
		"a\xf1\x80\x80\xe1\x80\xc2b\x80c\x80\xbfd": "a???b?c??d",
		"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82A":        "????????A",
		"\xed\xa0\x80\xed\xbf\xbf\xed\xafA":        "????????A",
		"\xf4\x91\x92\x93\xffA\x80\xbfB":           "?????A??B",
		"\xe1\x80\xe2\xf0\x91\x92\xf1\xbfA":        "????A",
		"\xe2\x82":                                 "?",
		"\xf0\x9f\x98":                             "?",
		"\ufffd\xff":                               "??",
	} {
		want = strings.ReplaceAll(want, "?", "\ufffd")
		if got := string(logs.ToValidUTF8([]byte(raw))); got != want {
			t.Errorf("%q becomes %q, want %q", raw, got, want)
		}
	}
	if got, want := logs.DecodeLossy([]byte("a\r\n\xe2\x82\r")), "a\n\ufffd\n"; got != want {
		t.Errorf("replaced: %q, want %q", got, want)
	}
}

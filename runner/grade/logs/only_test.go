package logs_test

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/runner/grade/logs"
)

// some selects every third test, independently of the order.
func some(name string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return h.Sum32()%3 == 0
}

// picked returns the wanted tests as "name: status".
func picked(tests *logs.Tests, wanted func(string) bool) (list []string) {
	for name, status := range tests.All() {
		if wanted(name) {
			list = append(list, fmt.Sprintf("%s: %s", name, status))
		}
	}
	return list
}

// sameOnly compares ParseOnly with Parse, for a parser and a text.
func sameOnly(t *testing.T, parser, text string) {
	t.Helper()
	for of, wanted := range map[string]func(string) bool{
		"some": some,
		"none": func(string) bool { return false },
	} {
		subject := logs.InstanceInfo{InstanceID: "x__x-2006", Version: "3.0"}
		all, errAll := logs.Parse(parser, text, subject)
		only, errOnly := logs.ParseOnly(parser, text, subject, wanted)
		if errAll != nil || errOnly != nil {
			assert.Equal(t, fmt.Sprint(errOnly), fmt.Sprint(errAll), "%s, %s", parser, of)
			continue
		}
		assert.NoDiff(t, cmp.Diff(picked(all, wanted), picked(only, wanted)), "%s, %s: tests (-all +only)", parser, of)
		if all.Any() != only.Any() || all.AnyFailed() != only.AnyFailed() {
			t.Errorf("%s, %s: any %t, failed %t; of all tests %t, %t",
				parser, of, only.Any(), only.AnyFailed(), all.Any(), all.AnyFailed())
		}
	}
}

func TestParseOnly(t *testing.T) {
	for _, file := range corpustest.Glob(t, corpustest.Subdir(t, "parsers"), "*/*.log") {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		text, err := logs.Decode(raw)
		require.NoError(t, err)
		sameOnly(t, filepath.Base(filepath.Dir(file)), text)
	}
}

// The status of an unwanted test may change from line to line.
func TestParseOnlyChanges(t *testing.T) {
	none := func(string) bool { return false }
	for text, want := range map[string]bool{
		"FAILED a":                      true,
		"FAILED a\nPASSED a":            false,
		"PASSED a\nERROR a":             true,
		"FAILED a\nFAILED b\nPASSED a":  true,
		"FAILED a\nSKIPPED a\nPASSED b": false,
	} {
		tests, err := logs.ParseOnly("parse_log_pytest", text, logs.InstanceInfo{}, none)
		if err != nil || tests.AnyFailed() != want || !tests.Any() || tests.Len() != 0 {
			t.Errorf("%q: failed %t, any %t, %d kept, error %v", text, tests.AnyFailed(), tests.Any(), tests.Len(), err)
		}
	}
	// Django's "ok" on its own line replaces a failure.
	tests, err := logs.ParseOnly("parse_log_django", "a ... FAIL\nok", logs.InstanceInfo{}, none)
	if err != nil || tests.AnyFailed() || !tests.Any() {
		t.Errorf("failed %t, any %t, error %v", tests.AnyFailed(), tests.Any(), err)
	}
}

// A million unwanted tests need little memory.
func TestParseOnlyIsSmall(t *testing.T) {
	var s strings.Builder
	for i := range 1_000_000 {
		fmt.Fprintf(&s, "PASSED t.py::test_%d\n", i)
	}
	text := s.String()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tests, err := logs.ParseOnly("parse_log_pytest", text, logs.InstanceInfo{}, func(name string) bool { return name == "t.py::test_7" })
	runtime.ReadMemStats(&after)
	if err != nil || tests.Len() != 1 {
		t.Fatalf("%d tests, error %v", tests.Len(), err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("%d bytes were allocated", took)
	}
}

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
		_, err := logs.Decode([]byte(raw))
		assert.ErrorIs(t, err, logs.ErrNotUTF8, "%q", raw)
	}
}

func TestReadPassesErrorsOn(t *testing.T) {
	broken := errors.New("broken")
	_, err := logs.DecodeReader(iotest.ErrReader(broken), 0)
	assert.ErrorIs(t, err, broken)
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
		assert.Equal(t, want, string(logs.ToValidUTF8([]byte(raw))), "%q becomes", raw)
	}
	if got, want := logs.DecodeLossy([]byte("a\r\n\xe2\x82\r")), "a\n\ufffd\n"; got != want {
		t.Errorf("replaced: %q, want %q", got, want)
	}
}

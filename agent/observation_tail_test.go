package agent

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/minibench/mini/env"
)

func TestShortenToTail(t *testing.T) {
	lines := func(from, to int) string {
		var b strings.Builder
		for i := from; i <= to; i++ {
			fmt.Fprintf(&b, "line %d\n", i)
		}
		return b.String()
	}
	long := strings.Repeat("ä", 30000) // 60,000 bytes
	cut := result(lines(1, 20000))     // truncated by the sandbox
	whole := string(cut.Output)
	cut.Output, cut.Head, cut.Truncated = []byte(whole[:70000]+whole[len(whole)-70001:]), 70000, true

	for _, tt := range []struct {
		name string
		o    ObservationConfig
		in   env.Result
		tail string // empty if all is shown
		note string
	}{
		{name: "empty", in: result("")},
		{name: "short", in: result("a\nb")},
		{name: "2,000 lines", in: result(lines(1, 2000))},
		{name: "2,001 lines", in: result(lines(1, 2001)), tail: lines(2, 2001), note: "1 of its lines, 7 characters"},
		{name: "no line end at the end", in: result(lines(1, 2000) + "last"), tail: lines(2, 2000) + "last", note: "1 of its lines, 7 characters"},
		{name: "51,200 bytes", in: result(strings.Repeat(strings.Repeat("x", 1023)+"\n", 50))},
		{name: "a line more", in: result("a\n" + strings.Repeat(strings.Repeat("x", 1023)+"\n", 50)), tail: strings.Repeat(strings.Repeat("x", 1023)+"\n", 50), note: "1 of its lines, 2 characters"},
		{name: "one long line", in: result(long), tail: long[:51200], note: "left out: 4400 characters"},
		{name: "cut within a character", o: ObservationConfig{MaxBytes: 5}, in: result("äää"), tail: "ää", note: "left out: 1 characters"},
		{name: "bytes that are none", o: ObservationConfig{MaxBytes: 3}, in: result("\xbf\xbf\xbf\xbf"), tail: "\ufffd\ufffd\ufffd", note: "left out: 1 characters"},
		{name: "few lines", o: ObservationConfig{MaxLines: 2}, in: result(lines(1, 10)), tail: lines(9, 10), note: "8 of its lines, 56 characters"},
		{name: "few bytes", o: ObservationConfig{MaxBytes: 15}, in: result(lines(1, 9)), tail: lines(8, 9), note: "7 of its lines, 49 characters"},
		{name: "what the sandbox cut", o: ObservationConfig{MaxLines: 3}, in: cut, tail: lines(19998, 20000), note: fmt.Sprintf("left out: %d characters", utf8.RuneCountInString(whole)-33)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := tt.o
			o.Keep = KeepTail
			v := o.orDefault().shorten(tt.in)
			switch {
			case tt.tail == "" && (v.isElided || v.text != string(tt.in.Output)):
				t.Errorf("not shown whole: %+.200v", v)
			case tt.tail != "" && (!v.isElided || v.tail != tt.tail || !strings.Contains(v.head, tt.note) || v.text != v.head+"\n"+v.tail):
				t.Errorf("head %q, tail of %d bytes: %.100q; want %q and %d bytes", v.head, len(v.tail), v.tail, tt.note, len(tt.tail))
			}
			if tt.tail != "" && v.elidedChars+int64(utf8.RuneCountInString(v.tail)) != tt.in.Chars {
				t.Errorf("%d characters are left out, %d shown, of %d", v.elidedChars, utf8.RuneCountInString(v.tail), tt.in.Chars)
			}
		})
	}
}

func TestObservationSettings(t *testing.T) {
	for _, tt := range []struct {
		o    ObservationConfig
		want string
	}{
		{ObservationConfig{}, ""},
		{ObservationConfig{Keep: KeepTail}, ""},
		{ObservationConfig{Keep: KeepEnds}, ""},
		{ObservationConfig{Keep: KeepTail, MaxLines: 100, MaxBytes: 1000}, ""},
		{ObservationConfig{Keep: "head"}, `keep "head" is neither "ends" nor "tail"`},
		{ObservationConfig{MaxLines: 5}, "are for keep: tail"},
		{ObservationConfig{Keep: KeepTail, MaxLines: -1}, "neither may be negative"},
		{ObservationConfig{Keep: KeepTail, MaxBytes: maxObservation + 1}, "at most 1000000"},
	} {
		err := tt.o.orDefault().validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.o, err, tt.want)
		}
	}
	c := Config{Observation: ObservationConfig{Keep: KeepTail, MaxBytes: maxObservation}.orDefault()}
	if got := c.outputLimit(); got/2 < maxObservation {
		t.Errorf("the sandbox keeps %d bytes, not enough for a tail of %d", got, maxObservation)
	}
}

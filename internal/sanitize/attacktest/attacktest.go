// Package attacktest provides test inputs that would control a terminal if printed unchanged, and
// a check of sanitized output.
//
//	for _, attack := range attacktest.Attacks() {
//		if problem := attacktest.FindControl(show(attack.Text), 0); problem != "" {
//			t.Errorf("%s: %s", attack.Name, problem)
//		}
//	}
package attacktest

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

// Attack is a text that controls some terminal.
type Attack struct {
	Name, Text string
}

// Prefix and Suffix surround each attack, so that tests can check that other text stays.
const (
	Prefix = "before "
	Suffix = " after"
)

// Payload is a part of every attack that makes a terminal run, write or paste something.
const Payload = "touch /tmp/owned"

// corpus has one attack per line: its name, a tab, and the text as a Go string literal.
//
//go:embed attacks.txt
var corpus string

// Attacks returns the attacks one by one, and all of them in one text.
func Attacks() []Attack {
	var all []Attack
	var combined strings.Builder
	add := func(name, text string) {
		all = append(all, Attack{name, Prefix + text + Suffix})
		combined.WriteString(text)
	}
	for line := range strings.SplitSeq(strings.TrimSpace(corpus), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, quoted, _ := strings.Cut(line, "\t")
		text, err := strconv.Unquote(quoted)
		if err != nil {
			panic(fmt.Sprintf("attacks.txt: %q: %v", name, err))
		}
		add(name, text)
	}
	for _, f := range floods {
		add(f.name, f.begin+strings.Repeat(f.text, f.times)+f.end)
	}
	return append(all, Attack{"all of them, one after another", Prefix + combined.String() + "\x1b\\\n" + Suffix})
}

// floods are repetitions of a text.
var floods = []struct {
	name, begin, text string
	times             int
	end               string
}{
	{"flood of marks", "a", "\u0301\u0489\u20dd", 2000, ""},
	{"flood of BEL", "", "\x07", 5000, ""},
	{"flood of an OSC", "\x1b]0;", "x", 100_000, "\x07"},
	{"flood of a DCS", "\x1bP", "x", 100_000, "\x1b\\"},
	{"flood of parameters", "\x1b[", "1;", 50_000, "m"},
	{"colours beyond numbers", "\x1b[1;", "1;", 500, "31m"},
	{"flood of colours", "", "\x1b[31m\x1b[42m", 5000, "x"},
	{"flood of line ends", "\x1b[7;38;2;200;200;200m", "\n", 2000, ""},
	{"flood of wide signs", "", "界", 5000, ""},
	{"flood of moves", "", "\x1b[256Cx\r", 500, ""},
	{"flood of intermediate", "\x1b", " ", 5000, "F"},
	{"many ESC", "", "\x1b", 50, "[2J"},
	{"backspaces beyond the line", "\n", "\b", 100, "x"},
	{"bytes in selectors", "a", "\U000e0123", 40, ""},
	{"vowels of Hangul", "\u1100", "\u1161", 60, ""},
}

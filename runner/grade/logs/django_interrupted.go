package logs

import "strings"

// An interruption is a message that Django prints between the dots of a test
// and its "ok", which then stands on a line of its own. The tests so found pass,
// whatever was read of them before.
type interruption struct {
	head string // what comes after the dots
	// tail finds, in the text after the head, where the message ends with its
	// "ok"; or says, with ok false, up to where no other head can have one.
	tail func(after string) (end int, ok bool)
}

var djangoInterruptions = [...]interruption{
	{"Testing against Django installed in ", func(after string) (int, bool) {
		const ending = " silenced).\nok"
		for from := 0; ; {
			i := strings.Index(after[from:], ending)
			if i < 0 {
				return len(after), false
			}
			if from += i + len(ending); endsLine(after[from:]) {
				return from, true
			}
		}
	}},
	{"Internal Server Error: /", func(after string) (int, bool) {
		eol := endOfLine(after)
		rest, ok := strings.CutPrefix(after[eol:], "\nok")
		if ok && endsLine(rest) && strings.HasSuffix(after[:eol], "/") {
			return eol + len("\nok"), true
		}
		return eol, false
	}},
	{"System check identified no issues (0 silenced)\nok", func(after string) (int, bool) {
		return 0, endsLine(after)
	}},
}

// endsLine says that a line ends where s begins.
func endsLine(s string) bool { return s == "" || s[0] == '\n' }

// endOfLine is how long the first line of s is.
func endOfLine(s string) int {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return i
	}
	return len(s)
}

// read finds every test that this interrupted: from the start of a line, a
// name, a space, three dots, a space, the head. Either space may be the end of a
// line.
func (in interruption) read(t *Tests, text string) {
	done := 0 // the text before is used up
	for at := 0; ; {
		i := strings.Index(text[at:], in.head)
		if i < 0 {
			return
		}
		head := at + i
		at = head + len(in.head)
		start, name, ok := announced(text[done:head])
		if !ok || done > 0 && start == 0 { // then its line began in what is used up
			continue
		}
		end, ok := in.tail(text[at:])
		at += end
		if ok {
			t.Set(name, Passed)
			done = at
		}
	}
}

// announced reads "name ... " at the end of a text; start is where the name's
// line begins in it.
func announced(before string) (start int, name string, ok bool) {
	before, ok = cutSpaceEnd(before)
	if !ok {
		return 0, "", false
	}
	if before, ok = strings.CutSuffix(before, "..."); !ok {
		return 0, "", false
	}
	if before, ok = cutSpaceEnd(before); !ok {
		return 0, "", false
	}
	start = strings.LastIndexByte(before, '\n') + 1
	return start, before[start:], true
}

package logs

import "strings"

var redisWords = map[string]Status{"[ok]": Passed, "[err]": Failed, "[skip]": Skipped, "[ignore]": Skipped}

// redis reads "[ok]: name (3 ms)". A failure says where it is, "name in
// tests/unit/x.tcl".
func redis(line string) (string, Status, bool) {
	if line[0] != '[' {
		return none()
	}
	word, rest, _ := strings.Cut(line, ":")
	s := redisWords[word]
	name, space := cutSpace(rest)
	if s == "" || !space || name == "" {
		return none()
	}
	name = cutDuration(name)
	if s == Failed {
		name = cutPlace(name)
	}
	return name, s, true
}

// cutPlace takes " in file" from the end: the spaces around "in" with it. There
// is none where the name ends with a space.
func cutPlace(name string) string {
	rest, place := cutLastField(name)
	if place == "" || !strings.HasSuffix(name, place) {
		return name
	}
	rest = stripRight(rest)
	in, ok := strings.CutSuffix(rest, "in")
	if before := stripRight(in); ok && len(before) < len(in) {
		return before
	}
	return name
}

// jq reads "PASS: name".
func jq(line string) (string, Status, bool) {
	s := Passed
	rest, ok := strings.CutPrefix(line, "PASS:")
	if !ok {
		s = Failed
		rest, ok = strings.CutPrefix(line, "FAIL:")
	}
	name, space := cutSpace(rest)
	return name, s, ok && space && name != ""
}

var micropythonWords = map[string]Status{"pass": Passed, "FAIL": Failed, "skip": Skipped}

// micropython reads "pass  name".
func micropython(line string) (string, Status, bool) {
	if len(line) < 4 {
		return none()
	}
	s := micropythonWords[line[:4]]
	rest, space := cutSpace(line[4:])
	name := stripLeft(rest)
	return name, s, s != "" && space && name != ""
}

// googletest reads "[       OK ] name (0 ms)", after the last such bracket on
// the line and up to the last space before a parenthesis.
func googletest(line string) (string, Status, bool) {
	if !strings.HasSuffix(line, ")") || !strings.Contains(line, "]") {
		return none()
	}
	end := lastParenthesis(line)
	if end < 0 {
		return none()
	}
	head := line[:end]
	for {
		i := strings.LastIndexByte(head, ']')
		if i < 0 {
			return none()
		}
		head = line[:i]
		name, space := cutSpace(line[i+1 : end])
		if s := bracketed(head); space && s != "" {
			return name, s, true
		}
	}
}

// lastParenthesis is where the last space directly before a "(" is, or -1.
func lastParenthesis(s string) int {
	for {
		i := strings.LastIndexByte(s, '(')
		if i < 0 {
			return -1
		}
		s = s[:i]
		if before, ok := cutSpaceEnd(s); ok {
			return len(before)
		}
	}
}

// bracketed reads "[ OK " at the end of s.
func bracketed(s string) Status {
	s = stripRight(s)
	status := Passed
	s, ok := strings.CutSuffix(s, "OK")
	if !ok {
		status = Failed
		s, ok = strings.CutSuffix(s, "FAILED")
	}
	if !ok || !strings.HasSuffix(stripRight(s), "[") {
		return ""
	}
	return status
}

package logs

import "strings"

// pytestV2 reads the summary, and the older form with the status at the end.
// Ids keep their spaces. Colours and control characters are dropped first.
func pytestV2(line string) (string, Status, bool) {
	if !mayHaveStatus(line) {
		return none()
	}
	line = dropControls(dropColours(line))
	switch {
	case startsWithStatus(line):
		if strings.HasPrefix(line, string(Failed)) {
			line, _, _ = strings.Cut(line, " - ")
		}
		word, rest := cutField(line)
		second, _ := cutField(rest)
		return collapse(rest), Status(word), second != "" && !isSkipCount(word, second)
	case endsWithStatus(line):
		rest, word := cutLastField(line)
		id := collapse(rest)
		return id, Status(word), id != ""
	}
	return none()
}

// mayHaveStatus looks at the ends of a line that is not cleaned yet: a status,
// or what cleaning may take away.
func mayHaveStatus(line string) bool {
	if line == "" {
		return false
	}
	first, last := line[0], line[len(line)-1]
	return first < ' ' || strings.IndexByte("FPSEX[", first) >= 0 ||
		last < ' ' || strings.IndexByte("DRLm", last) >= 0
}

// dropColours takes away "[31m", with one number, wherever it is.
func dropColours(line string) string {
	var b strings.Builder
	kept := 0
	for i := 0; ; {
		open := strings.IndexByte(line[i:], '[')
		if open < 0 {
			break
		}
		open += i
		i = open + 1
		rest, ok := cutDigits(line[i:])
		if ok && strings.HasPrefix(rest, "m") {
			b.WriteString(line[kept:open])
			i = len(line) - len(rest) + 1
			kept = i
		}
	}
	if kept == 0 {
		return line
	}
	b.WriteString(line[kept:])
	return b.String()
}

// dropControls takes away U+0001 to U+001F, tabs too; U+0000 stays.
func dropControls(line string) string {
	control := func(r rune) bool { return 1 <= r && r < ' ' }
	if strings.IndexFunc(line, control) < 0 {
		return line
	}
	return strings.Map(func(r rune) rune {
		if control(r) {
			return -1
		}
		return r
	}, line)
}

func endsWithStatus(line string) bool {
	for _, s := range statuses {
		if strings.HasSuffix(line, string(s)) {
			return true
		}
	}
	return false
}

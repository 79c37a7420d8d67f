package logs

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// minitest reads "Class#test_x = 0.01 s = .", here after the last ". " that has
// an equals sign behind it. What counts is the last of ".FE" on the line.
func minitest(line string) (string, Status, bool) {
	outcome := strings.LastIndexAny(line, ".FE")
	if outcome < 0 {
		return none()
	}
	equals := strings.LastIndexByte(line[:outcome], '=')
	if equals < 0 {
		return none()
	}
	name := strings.LastIndex(line[:equals], ". ")
	if name <= 0 {
		return none()
	}
	if line[outcome] == '.' {
		return line[:name], Passed, true
	}
	return line[:name], Failed, true
}

// cucumber reads "features/x.feature ....F": after the last space that has dots
// behind it.
func cucumber(line string) (string, Status, bool) {
	for head := line; ; {
		i := strings.LastIndex(head, " .")
		if i < 0 {
			return none()
		}
		head = line[:i]
		run := line[i+1:]
		rest := strings.TrimLeft(run, ".")
		switch {
		case strings.HasPrefix(rest, "F"):
			return head, Failed, true
		case len(run)-len(rest) > 1:
			return head, Passed, true
		}
	}
}

var rubyWords = map[byte]Status{'.': Passed, 'E': Failed, 'F': Failed, 'O': Skipped}

// rubyUnit reads "test: name:	.: (0.001)", where "test: " may be missing.
func rubyUnit(line string) (string, Status, bool) {
	if rest, ok := strings.CutPrefix(line, "test: "); ok {
		if name, s, ok := rubyOutcome(rest); ok {
			return name, s, true
		}
	}
	return rubyOutcome(line)
}

// rubyOutcome cuts at the last colon that has an outcome behind it.
func rubyOutcome(line string) (string, Status, bool) {
	for head := line; ; {
		i := strings.LastIndexByte(head, ':')
		if i <= 0 {
			return none()
		}
		head = line[:i]
		after := stripLeft(line[i+1:])
		if after == "" || len(after) == len(line)-i-1 {
			continue
		}
		s := rubyWords[after[0]]
		next, size := utf8.DecodeRuneInString(after[1:])
		if s == Passed || s != "" && (size == 0 || !isWord(next)) {
			return head, s, true
		}
	}
}

// rspec reads what a filter makes of RSpec's JSON, "name - passed".
func rspec(line string) (string, Status, bool) {
	passed, failed := strings.LastIndex(line, " - passed"), strings.LastIndex(line, " - failed")
	if passed > failed {
		return line[:passed], Passed, passed > 0
	}
	return line[:max(failed, 0)], Failed, failed > 0
}

// jekyll has one runner or the other, as the number of the pull request says.
func jekyll(t *Tests, text string, of Subject) error {
	parts := strings.SplitN(of.InstanceID, "-", 3)
	if len(parts) < 2 {
		return fmt.Errorf("no pull request is in the instance id %.100q", of.InstanceID)
	}
	switch parts[1] {
	case "9141", "8047", "8167":
		return perStripped(minitest)(t, text, of)
	case "8761", "8771":
		return perStripped(cucumber)(t, text, of)
	}
	return fmt.Errorf("no runner is known for the instance id %.100q", of.InstanceID)
}

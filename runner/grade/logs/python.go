package logs

import "strings"

// seaborn parses passes and failures in the short summary, and passes in the verbose output,
// where "PASSED" is in the middle of a line.
func seaborn(line string) (string, Status, bool) {
	failed, passed := strings.HasPrefix(line, string(Failed)), strings.HasPrefix(line, string(Passed))
	middle := strings.Contains(line, " "+string(Passed)+" ")
	if !failed && !passed && !middle {
		return noTest()
	}
	first, rest := cutField(line)
	second, _ := cutField(rest)
	switch {
	case second == "":
		return noTest()
	case failed:
		return second, Failed, true
	case middle:
		return first, Passed, second == string(Passed)
	}
	return second, Passed, true
}

// sympy parses first the headings of failures, such as "___ sympy/x.py:test_y ___", and then
// the results of sympy's own test runner, such as "test_y ok".
func sympy(t *Tests, text string, _ InstanceInfo) error {
	for line := range lines(text) {
		first, last := strings.IndexByte(line, ' '), strings.LastIndexByte(line, ' ')
		if first < last && strings.Contains(line[first+1:last], ".py:") {
			t.Set(line[first+1:last], Failed)
		}
	}
	for line := range lines(text) {
		line = strip(line)
		if !strings.HasPrefix(line, "test_") {
			continue
		}
		name, _ := cutField(line)
		switch {
		case strings.HasSuffix(line, " E"):
			t.Set(name, Error)
		case strings.HasSuffix(line, " F"):
			t.Set(name, Failed)
		case strings.HasSuffix(line, " ok"):
			t.Set(name, Passed)
		}
	}
	return nil
}

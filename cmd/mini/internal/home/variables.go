package home

import (
	"bytes"
	"maps"
	"regexp"
	"strings"

	"github.com/joho/godotenv"

	"github.com/minibench/mini/internal/lazyregexp"
)

// maxValue bounds the value of a variable, in bytes: keys are short.
const maxValue = 8 << 10

// CheckKey says what is wrong with a key, without repeating any of it.
func CheckKey(key string) error {
	switch {
	case key == "":
		return errorf("it is empty")
	case len(key) > maxValue:
		return errorf("it is longer than %d characters", maxValue)
	}
	for _, r := range key {
		if r <= ' ' || r > '~' || r == '\'' {
			return errorf("it has spaces, quotes or other signs that no key has")
		}
	}
	return nil
}

// Variables are those of a file of NAME=value lines. The error repeats nothing
// of the file, which holds keys.
func Variables(path string, data []byte) (map[string]string, error) {
	values, err := godotenv.Parse(bytes.NewReader(data))
	if err != nil {
		return nil, errorf("%s cannot be read: lines have the form NAME=value; mend it first", path)
	}
	return values, nil
}

// plain is what needs no quotes.
var plain = lazyregexp.New(`^[A-Za-z0-9_.:/+@%=-]+$`)

// SetVariable sets a variable in the text of such a file, in its place or at the
// end. All else stays as it is written.
func SetVariable(path string, data []byte, name, value string) ([]byte, error) {
	if err := CheckKey(value); err != nil {
		return nil, err
	}
	if !plain.MatchString(value) {
		value = "'" + value + "'"
	}
	return edit(path, data, name, name+"="+value)
}

// UnsetVariable takes a variable out; ok is false where there is none.
func UnsetVariable(path string, data []byte, name string) (text []byte, ok bool, err error) {
	values, err := Variables(path, data)
	if err != nil {
		return nil, false, err
	}
	if _, ok := values[name]; !ok {
		return data, false, nil
	}
	text, err = edit(path, data, name, "")
	return text, true, err
}

// edit puts a line in the place of a variable's; none for an empty one. What is
// meant by the others must not change by it.
func edit(path string, data []byte, name, line string) ([]byte, error) {
	want, err := Variables(path, data)
	if err != nil {
		return nil, err
	}
	own := regexp.MustCompile(`^[ \t]*(?:export[ \t]+)?` + regexp.QuoteMeta(name) + `[ \t]*[=:]`)
	var kept []string
	placed := line == ""
	for l := range strings.Lines(string(data)) {
		if !strings.HasSuffix(l, "\n") {
			l += "\n"
		}
		switch {
		case !own.MatchString(l):
			kept = append(kept, l)
		case !placed:
			kept, placed = append(kept, line+"\n"), true
		}
	}
	if !placed {
		kept = append(kept, line+"\n")
	}
	text := []byte(strings.Join(kept, ""))
	got, err := Variables(path, text)
	delete(want, name)
	if line != "" && err == nil {
		_, value, _ := strings.Cut(line, "=")
		want[name] = strings.Trim(value, "'")
	}
	if err != nil || !maps.Equal(got, want) {
		return nil, errorf("%s is written in a way that mini cannot change; change %s there by hand", path, name)
	}
	return text, nil
}

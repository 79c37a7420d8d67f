package userfiles

import (
	"bytes"
	"maps"
	"regexp"
	"strings"

	"github.com/joho/godotenv"

	"github.com/minibench/mini/internal/lazyregexp"
)

// maxValue is the maximum length of a value, in bytes: keys are short.
const maxValue = 8 << 10

// ValidateKey checks an API key. Its errors do not contain the key.
func ValidateKey(key string) error {
	switch {
	case key == "":
		return errorf("it is empty")
	case len(key) > maxValue:
		return errorf("it is longer than %d characters", maxValue)
	}
	for _, r := range key {
		if r <= ' ' || r > '~' || r == '\'' {
			return errorf("it has spaces, quotes or other characters that are not in keys")
		}
	}
	return nil
}

// ParseEnv parses a file of NAME=value lines. Its error does not contain the content, which
// holds keys.
func ParseEnv(path string, data []byte) (map[string]string, error) {
	values, err := godotenv.Parse(bytes.NewReader(data))
	if err != nil {
		return nil, errorf("%s is invalid: lines have the form NAME=value; fix it first", path)
	}
	return values, nil
}

// plainValue matches values that need no quotes.
var plainValue = lazyregexp.New(`^[A-Za-z0-9_.:/+@%=-]+$`)

// SetVariable returns the content of an env file with a variable set. It replaces the first
// line of the variable and removes the further ones, or appends a line. All other lines stay
// unchanged. The value must be valid by ValidateKey.
func SetVariable(path string, data []byte, name, value string) ([]byte, error) {
	if err := ValidateKey(value); err != nil {
		return nil, err
	}
	if !plainValue.MatchString(value) {
		value = "'" + value + "'"
	}
	return replaceLine(path, data, name, name+"="+value)
}

// UnsetVariable returns the content of an env file without a variable; ok is false if the
// variable is not set.
func UnsetVariable(path string, data []byte, name string) (text []byte, ok bool, err error) {
	values, err := ParseEnv(path, data)
	if err != nil {
		return nil, false, err
	}
	if _, ok := values[name]; !ok {
		return data, false, nil
	}
	text, err = replaceLine(path, data, name, "")
	return text, true, err
}

// replaceLine replaces the lines of a variable by one, or removes them if line is empty. It
// fails if the edit would change other variables.
func replaceLine(path string, data []byte, name, line string) ([]byte, error) {
	want, err := ParseEnv(path, data)
	if err != nil {
		return nil, err
	}
	assignment := regexp.MustCompile(`^[ \t]*(?:export[ \t]+)?` + regexp.QuoteMeta(name) + `[ \t]*[=:]`)
	var lines []string
	replaced := line == ""
	for l := range strings.Lines(string(data)) {
		if !strings.HasSuffix(l, "\n") {
			l += "\n"
		}
		switch {
		case !assignment.MatchString(l):
			lines = append(lines, l)
		case !replaced:
			lines, replaced = append(lines, line+"\n"), true
		}
	}
	if !replaced {
		lines = append(lines, line+"\n")
	}
	text := []byte(strings.Join(lines, ""))
	got, err := ParseEnv(path, text)
	delete(want, name)
	if line != "" && err == nil {
		_, value, _ := strings.Cut(line, "=")
		want[name] = strings.Trim(value, "'")
	}
	if err != nil || !maps.Equal(got, want) {
		return nil, errorf("mini cannot edit %s because of its syntax; change %s by hand", path, name)
	}
	return text, nil
}

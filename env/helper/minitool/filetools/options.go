package filetools

import (
	"strconv"
	"strings"
)

// arguments is a parsed command line.
type arguments struct {
	args        []string // the positional arguments
	values      map[string]string
	afterDashes int // number of arguments after "--", which are the last positional ones
}

// parse parses a command line. Options may be anywhere before "--", as "--name VALUE"
// or "--name=VALUE"; in the first form the next argument is the value, even if it
// starts with "-". takesValue maps each option to whether it has a value.
func parse(args []string, takesValue map[string]bool) (arguments, error) {
	a := arguments{values: map[string]string{}}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			a.afterDashes = len(args) - i - 1
			a.args = append(a.args, args[i+1:]...)
			break
		}
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			a.args = append(a.args, arg)
			continue
		}
		name, value, hasValue := strings.Cut(arg, "=")
		needsValue, known := takesValue[name]
		_, repeated := a.values[name]
		switch {
		case !known:
			return a, usagef("there is no option %s; what begins with - and is none goes behind --", quoted(name))
		case repeated:
			return a, usagef("%s is there twice", name)
		case hasValue && !needsValue:
			return a, usagef("%s takes no value", name)
		case needsValue && !hasValue:
			if i++; i == len(args) {
				return a, usagef("%s has no value", name)
			}
			value = args[i]
		}
		a.values[name] = value
	}
	return a, nil
}

func (a arguments) has(name string) bool {
	_, ok := a.values[name]
	return ok
}

// number returns the value of a numeric option, which must be at least 1.
func (a arguments) number(name string, defaultValue int) (int, error) {
	text, ok := a.values[name]
	if !ok {
		return defaultValue, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, usagef("%s is %s; it must be a number from 1", name, quoted(text))
	}
	return n, nil
}

// file returns the first positional argument, the FILE. It returns an error if there is
// none, if there are more than maxArgs, or if the name is probably a mistake.
func (a arguments) file(maxArgs int) (string, error) {
	switch {
	case len(a.args) == 0:
		return "", usagef("there is no FILE")
	case len(a.args) > maxArgs:
		return "", usagef("%s is one argument too many; a text with spaces goes in quotes", quoted(clipped(a.args[maxArgs])))
	case a.args[0] == "":
		return "", usagef("the name of the file is empty")
	case a.args[0] == "-" && a.afterDashes < len(a.args):
		return "", usagef("the first argument is the FILE; a file called - is ./-")
	}
	return a.args[0], nil
}

// clipped returns the beginning of a text for an error message.
func clipped(s string) string {
	const maxLength = 60
	if len(s) <= maxLength {
		return s
	}
	return strings.ToValidUTF8(s[:maxLength], "") + "..."
}

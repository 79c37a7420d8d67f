package files

import (
	"strconv"
	"strings"
)

// arguments are a command line taken apart.
type arguments struct {
	rest   []string // what is no option
	values map[string]string
	plain  int // how many of rest stood behind "--", at its end
}

// parse takes a command line apart. Options may stand anywhere before "--", as
// "--name VALUE" or "--name=VALUE"; the next argument is the value, whatever it
// looks like. takes says of each whether it has one.
func parse(args []string, takes map[string]bool) (arguments, error) {
	a := arguments{values: map[string]string{}}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			a.plain = len(args) - i - 1
			a.rest = append(a.rest, args[i+1:]...)
			break
		}
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			a.rest = append(a.rest, arg)
			continue
		}
		name, value, has := strings.Cut(arg, "=")
		wants, known := takes[name]
		_, again := a.values[name]
		switch {
		case !known:
			return a, usagef("there is no option %s; what begins with - and is none goes behind --", quoted(name))
		case again:
			return a, usagef("%s is there twice", name)
		case has && !wants:
			return a, usagef("%s takes no value", name)
		case wants && !has:
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

// number is the value of an option, 1 or more.
func (a arguments) number(name string, otherwise int) (int, error) {
	text, ok := a.values[name]
	if !ok {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, usagef("%s is %s; it must be a number from 1", name, quoted(text))
	}
	return n, nil
}

// file is the first argument, of at most so many. What it is called is known to
// be no mistake of writing.
func (a arguments) file(most int) (string, error) {
	switch {
	case len(a.rest) == 0:
		return "", usagef("there is no FILE")
	case len(a.rest) > most:
		return "", usagef("%s is one argument too many; a text with spaces goes in quotes", quoted(clipped(a.rest[most])))
	case a.rest[0] == "":
		return "", usagef("the name of the file is empty")
	case a.rest[0] == "-" && a.plain < len(a.rest):
		return "", usagef("the first argument is the FILE; a file called - is ./-")
	}
	return a.rest[0], nil
}

// clipped is the beginning of a text that need not be known whole.
func clipped(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

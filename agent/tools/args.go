package tools

import (
	"slices"
	"strconv"
	"strings"
)

// Flag is one that a tool takes.
type Flag struct {
	// Name is without the dashes.
	Name string
	// Switch says that it has no value.
	Switch bool
	// Repeats says that it may be there more than once.
	Repeats bool
}

// Args are the arguments of a call, read.
type Args struct {
	// Rest are those that are no flags, in order. "-" is one of them.
	Rest   []string
	values map[string][]string
}

// ParseArgs reads arguments as all tools do: --name value, --name=value, and
// --name alone for switches, anywhere before "--", behind which nothing is a flag.
// "-" and negative numbers are no flags. The error is a *UsageError: a flag that
// nobody knows, one that is there twice, a value that is missing or too much. A
// value that begins with "--" must be written behind a "=".
func ParseArgs(args []string, flags ...Flag) (Args, error) {
	a := Args{values: map[string][]string{}}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			a.Rest = append(a.Rest, args[i+1:]...)
			return a, nil
		case !isFlag(arg):
			a.Rest = append(a.Rest, arg)
			continue
		}
		name, value, given := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		at := slices.IndexFunc(flags, func(f Flag) bool { return f.Name == name })
		if at < 0 || !strings.HasPrefix(arg, "--") {
			return a, unknownFlag(arg, flags)
		}
		f := flags[at]
		switch {
		case f.Switch && given:
			return a, Usagef("--%s takes no value", name)
		case !f.Switch && !given:
			if i+1 == len(args) || strings.HasPrefix(args[i+1], "--") {
				return a, Usagef("--%s needs a value", name)
			}
			i++
			value = args[i]
		}
		if len(a.values[name]) > 0 && !f.Repeats {
			return a, Usagef("--%s is there twice", name)
		}
		a.values[name] = append(a.values[name], value)
	}
	return a, nil
}

func isFlag(arg string) bool {
	if len(arg) < 2 || arg[0] != '-' {
		return false
	}
	_, err := strconv.ParseFloat(arg, 64)
	return err != nil
}

func unknownFlag(arg string, flags []Flag) error {
	name, _, _ := strings.Cut(arg, "=")
	names := make([]string, len(flags))
	for i, f := range flags {
		names[i] = "--" + f.Name
	}
	hint := "; what follows -- is no flag"
	if near := Nearest(name, names); near != "" {
		hint = "; did you mean " + near + "?"
	}
	return Usagef("there is no flag %.80q%s", name, hint)
}

// Has says that a flag is there.
func (a Args) Has(name string) bool { return len(a.values[name]) > 0 }

// Value is that of a flag; empty where it is not there.
func (a Args) Value(name string) string {
	if v := a.values[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// Values are those of a flag that repeats.
func (a Args) Values(name string) []string { return a.values[name] }

// Int is the whole number that a flag has, from least to most; otherwise where it
// is not there.
func (a Args) Int(name string, otherwise, least, most int) (int, error) {
	if !a.Has(name) {
		return otherwise, nil
	}
	n, err := strconv.Atoi(a.Value(name))
	if err != nil || n < least || n > most {
		return 0, Usagef("--%s is a whole number from %d to %d, not %.40q", name, least, most, a.Value(name))
	}
	return n, nil
}

// Text is what stands in the arguments, or in the input for "-", without space
// around it. The error is a *UsageError where that is nothing, or more than most
// bytes; what names it.
func (a Args) Text(c Call, what string, most int) (string, error) {
	text := strings.Join(a.Rest, " ")
	if len(a.Rest) == 1 && a.Rest[0] == "-" {
		text = string(c.Input)
	}
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return "", Usagef("the %s is missing", what)
	case len(text) > most:
		return "", Usagef("the %s has %d bytes, and %d are allowed", what, len(text), most)
	}
	return text, nil
}

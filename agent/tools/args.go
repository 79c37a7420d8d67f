package tools

import (
	"slices"
	"strconv"
	"strings"
)

// Flag is a flag that a tool accepts.
type Flag struct {
	// Name has no dashes.
	Name string
	// Boolean says that the flag has no value.
	Boolean bool
	// Repeatable says that the flag may be given more than once.
	Repeatable bool
}

// Args are the parsed arguments of a call.
type Args struct {
	// Positional are the arguments that are not flags, in order, including "-".
	Positional []string
	values     map[string][]string
}

// ParseArgs parses arguments in the syntax of all tools: --name value,
// --name=value, and --name alone for boolean flags. Flags may stand anywhere
// before "--". "-" and negative numbers are not flags. A value that begins with
// "--" must follow "=". The error is a *UsageError for an unknown flag, a
// repeated flag, or a missing or unexpected value.
func ParseArgs(args []string, flags ...Flag) (Args, error) {
	a := Args{values: map[string][]string{}}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			a.Positional = append(a.Positional, args[i+1:]...)
			return a, nil
		case !isFlag(arg):
			a.Positional = append(a.Positional, arg)
			continue
		}
		name, value, hasValue := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		index := slices.IndexFunc(flags, func(f Flag) bool { return f.Name == name })
		if index < 0 || !strings.HasPrefix(arg, "--") {
			return a, unknownFlagError(arg, flags)
		}
		f := flags[index]
		switch {
		case f.Boolean && hasValue:
			return a, Usagef("--%s takes no value", name)
		case !f.Boolean && !hasValue:
			if i+1 == len(args) || strings.HasPrefix(args[i+1], "--") {
				return a, Usagef("--%s needs a value", name)
			}
			i++
			value = args[i]
		}
		if len(a.values[name]) > 0 && !f.Repeatable {
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

func unknownFlagError(arg string, flags []Flag) error {
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

// Has reports whether a flag is given.
func (a Args) Has(name string) bool { return len(a.values[name]) > 0 }

// Value returns the first value of a flag, or "" if the flag is not given.
func (a Args) Value(name string) string {
	if v := a.values[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// Values returns all values of a repeatable flag.
func (a Args) Values(name string) []string { return a.values[name] }

// Int returns the integer value of a flag, or fallback if the flag is not
// given. The error is a *UsageError if the value is not a whole number from
// lowest to highest.
func (a Args) Int(name string, fallback, lowest, highest int) (int, error) {
	if !a.Has(name) {
		return fallback, nil
	}
	n, err := strconv.Atoi(a.Value(name))
	if err != nil || n < lowest || n > highest {
		return 0, Usagef("--%s is a whole number from %d to %d, not %.40q", name, lowest, highest, a.Value(name))
	}
	return n, nil
}

// Text returns the positional arguments joined by spaces, or c.Input if the
// only one is "-", without surrounding white space. The error is a *UsageError
// if the text is empty or longer than limit bytes; label names the text in the
// error.
func (a Args) Text(c Call, label string, limit int) (string, error) {
	text := strings.Join(a.Positional, " ")
	if len(a.Positional) == 1 && a.Positional[0] == "-" {
		text = string(c.Input)
	}
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return "", Usagef("the %s is missing", label)
	case len(text) > limit:
		return "", Usagef("the %s has %d bytes, and %d are allowed", label, len(text), limit)
	}
	return text, nil
}

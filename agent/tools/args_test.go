package tools_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/minibench/mini/agent/tools"
)

func TestParseArgs(t *testing.T) {
	flags := []tools.Flag{{Name: "limit"}, {Name: "category"}, {Name: "json", Boolean: true}, {Name: "tag", Repeatable: true}}
	tests := map[string]struct {
		args string
		want string
		err  string
	}{
		"nothing":              {"", "[] [] false []", ""},
		"words":                {"a b", "[a b] [] false []", ""},
		"a value behind":       {"a --category x b", "[a b] [x] false []", ""},
		"a value with =":       {"--category=--x=y", "[] [--x=y] false []", ""},
		"an empty value":       {"--category=", "[] [] false []", ""},
		"a switch":             {"--json a", "[a] [] true []", ""},
		"repeats":              {"--tag a --tag=b", "[] [] false [a b]", ""},
		"input":                {"-", "[-] [] false []", ""},
		"a negative number":    {"-5 -0.5", "[-5 -0.5] [] false []", ""},
		"a value with a dash":  {"--category -x", "[] [-x] false []", ""},
		"the end of flags":     {"--json -- --limit -- -x", "[--limit -- -x] [] true []", ""},
		"a flag nobody knows":  {"--limti 5", "", `there is no flag "--limti"; did you mean --limit?`},
		"with a value":         {"--nonsense=5", "", `there is no flag "--nonsense"; what follows -- is no flag`},
		"a short flag":         {"-l", "", `there is no flag "-l"`},
		"two dashes for short": {"-limit 5", "", `there is no flag "-limit"; did you mean --limit?`},
		"twice":                {"--limit 5 --limit=6", "", "--limit is there twice"},
		"a switch twice":       {"--json --json", "", "--json is there twice"},
		"no value":             {"--limit", "", "--limit needs a value"},
		"a flag for a value":   {"--limit --json", "", "--limit needs a value"},
		"too much of a value":  {"--json=yes", "", "--json takes no value"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a, err := tools.ParseArgs(strings.Fields(test.args), flags...)
			if test.err != "" {
				wrong, ok := errors.AsType[*tools.UsageError](err)
				if !ok || !strings.Contains(wrong.Text, test.err) {
					t.Errorf("error %v, want %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("%v [%s] %v %v", a.Positional, a.Value("category"), a.Has("json"), a.Values("tag"))
			if got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

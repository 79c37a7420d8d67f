package configs_test

import (
	"strings"
	"testing"

	"github.com/minibench/mini/configs"
)

// Mistakes that do not depend on this machine are errors of the configuration, with
// the line.
func TestInvalidTools(t *testing.T) {
	for name, tt := range map[string]struct{ section, want string }{
		"a slip in a program":     {"host: [{name: a, command: [a], timeou: 5}]", "mine.yaml:2: unknown key tools.host[0].timeou; did you mean tools.host[0].timeout?"},
		"a slip in a server":      {"mcp: [{name: a, command: [a], tool: [now]}]", "unknown key tools.mcp[0].tool; did you mean tools.mcp[0].tools?"},
		"arguments":               {"mcp: [{name: a, command: [a], args: [b]}]", "unknown key tools.mcp[0].args; command holds the program and its arguments"},
		"headers":                 {"mcp: [{name: a, url: 'http://h', headers: {a: b}}]", "token_env names the variable"},
		"a command as one text":   {"host: [{name: a, command: issues.py -x}]", `tools.host[0].command: it must be a list of strings, not "issues.py -x"`},
		"a mapping in a list":     {"host: [{name: a, command: [{a: b}]}]", "tools.host[0].command[0]: it must be a string, not a mapping"},
		"a time as a text":        {"mcp: [{name: a, command: [a], timeout: 5s}]", `tools.mcp[0].timeout: it must be a number, not "5s"`},
		"no mapping":              {"host: [issues.py]", `tools.host[0]: it must be a mapping, not "issues.py"`},
		"no list":                 {"host: {name: a}", "tools.host: it must be a list of mappings, not a mapping"},
		"no name":                 {"host: [{command: [a]}]", "mine.yaml:2: tools.host[0]: the name is missing"},
		"no command":              {"host: [{name: a}]", "tools.host[0]: the command is missing"},
		"an empty command":        {`host: [{name: a, command: [""]}]`, "tools.host[0].command: the name of the program is empty"},
		"an empty search":         {`search: [""]`, "tools.search: the program has no name"},
		"a name of two words":     {"host: [{name: a b, command: [a]}]", `tools.host[0].name: tool name "a b" is invalid`},
		"a name of mini's":        {"host: [{name: recall, command: [a]}]", `tools.host[0].name: "recall" is the name of a built-in tool`},
		"two of one name":         {"host: [{name: a, command: [a]}, {name: a, command: [b]}]", `tools.host[1].name: "a" is already the name of another item`},
		"a variable with a value": {"host: [{name: a, command: [a], env: [KEY=sk-1]}]", "tools.host[0].env: an item is not a valid name of a variable"},
		"a negative time":         {"host: [{name: a, command: [a], timeout: -1}]", "tools.host[0].timeout: -1 is not a number of seconds"},
		"a negative size":         {"host: [{name: a, command: [a], max_output: -1}]", "tools.host[0].max_output: -1 is not a number of bytes"},
		"neither":                 {"mcp: [{name: a}]", "mine.yaml:2: tools.mcp[0]: set either command or url"},
		"both":                    {"mcp: [{name: a, command: [a], url: 'http://h'}]", "set either command or url"},
		"two servers":             {"mcp: [{name: a, command: [a]}, {name: a, command: [b]}]", "tools.mcp[1].name: \"a\" is already the name"},
		"a token for a program":   {"mcp: [{name: a, command: [a], token_env: T}]", "token_env is for a url"},
		"a token itself":          {"mcp: [{name: a, url: 'http://h', token_env: 'a=sk-1'}]", "tools.mcp[0].token_env: not a valid name"},
		"another scheme":          {"mcp: [{name: a, url: 'ftp://h'}]", "tools.mcp[0].url: not a URL that starts with http"},
		"a password":              {"mcp: [{name: a, url: 'http://u:sk-1@h'}]", "tools.mcp[0].url: the url contains a user name or password"},
		"a key in the query":      {"mcp: [{name: a, url: 'http://h/mcp?api_key=sk-1'}]", "seems to contain a key, which would be written to the files of a run; put it in a variable and name that in token_env"},
		"a key by its looks":      {"mcp: [{name: a, url: 'http://h/mcp?x=0a1b2c3d4e5f60718293sk-1'}]", "seems to contain a key"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := configs.ReadFile(file(t, "mine.yaml", "tools:\n  "+tt.section+"\n"))
			if err == nil {
				_, err = configs.Merge(builtin(t, "mini"), l)
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "sk-1") || strings.Contains(err.Error(), "unmarshal") {
				t.Errorf("%v\nwant %s", err, tt.want)
			}
		})
	}
}

// An error about a value set by -c contains its key once.
func TestFlagErrorNamesKeyOnce(t *testing.T) {
	for arg, want := range map[string]string{
		`tools.host=[{"name":"a"}]`: "-c tools.host[0]: the command is missing",
		"tools.search=[\"\"]":       `-c tools.search: the program`,
	} {
		_, err := resolve(arg)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestValidTools(t *testing.T) {
	l, err := configs.ReadFile(file(t, "mine.yaml", `tools:
  search: [find-page]
  host: [{name: issues, command: [python3, issues.py], usage: issues ID, about: shows one, env: [ISSUES_API_KEY], timeout: 5, max_output: 100}]
  mcp:
    - {name: clock, command: [clock], env: [TZ], tools: [now], timeout: 2.5}
    - {name: books, url: "https://books.example/mcp?shelf=the-long-one-with-books-of-1984", token_env: BOOKS_TOKEN}
`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := configs.Merge(builtin(t, "mini"), l); err != nil {
		t.Error(err)
	}
}

package skills_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/minibench/mini/agent/tools/skills"
)

const good = "---\nname: s\ndescription: it helps\n---\nDo it.\n"

// head returns a SKILL.md with these lines in its front matter.
func head(lines ...string) string { return "---\n" + strings.Join(lines, "\n") + "\n---\ntext\n" }

func TestParse(t *testing.T) {
	for name, tt := range map[string]struct {
		data string
		want skills.Skill
	}{
		"the least": {good, skills.Skill{Name: "s", Description: "it helps", Text: "Do it.\n"}},
		"all of it": {
			head("name: s", "description: >", "  it  helps", "  much", "version: 1.20", "allowed-tools: Bash(git add:*), Read", "license: MIT", "compatibility: needs git", "metadata: {author: me, year: 2026}"),
			skills.Skill{
				Name: "s", Description: "it helps much", Version: "1.20", AllowedTools: []string{"Bash(git add:*)", "Read"},
				License: "MIT", Compatibility: "needs git", Metadata: map[string]string{"author": "me", "year": "2026"}, Text: "text\n",
			},
		},
		"a list of tools":     {head("name: s", "description: d", "allowed-tools: [Bash(git log *), Read]"), skills.Skill{Name: "s", Description: "d", AllowedTools: []string{"Bash(git log *)", "Read"}, Text: "text\n"}},
		"no tool":             {head("name: s", "description: d", "allowed-tools: []"), skills.Skill{Name: "s", Description: "d", AllowedTools: []string{}, Text: "text\n"}},
		"version in metadata": {head("name: s", "description: d", "metadata: {version: '2'}"), skills.Skill{Name: "s", Description: "d", Version: "2", Metadata: map[string]string{"version": "2"}, Text: "text\n"}},
		"BOM and CRLF":        {"\ufeff" + strings.ReplaceAll(good, "\n", "\r\n"), skills.Skill{Name: "s", Description: "it helps", Text: "Do it.\n"}},
		"a rule in the text":  {good + "---\nmore\n", skills.Skill{Name: "s", Description: "it helps", Text: "Do it.\n---\nmore\n"}},
		"spaces behind ---":   {strings.ReplaceAll(good, "---\n", "---  \n"), skills.Skill{Name: "s", Description: "it helps", Text: "Do it.\n"}},
		"no end of line":      {strings.TrimSuffix(good, "\n"), skills.Skill{Name: "s", Description: "it helps", Text: "Do it."}},
		"the longest":         {head("name: s", "description: "+strings.Repeat("漢", 1024)), skills.Skill{Name: "s", Description: strings.Repeat("漢", 1024), Text: "text\n"}},
		"joined signs":        {head("name: s", "description: for 👩‍💻"), skills.Skill{Name: "s", Description: "for 👩‍💻", Text: "text\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, problems := skills.Parse("s", []byte(tt.data))
			if len(problems) > 0 {
				t.Error(problems)
			}
			if diff := cmp.Diff(tt.want, s, cmpopts.IgnoreUnexported(skills.Skill{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Each line of want is one problem: line number and text.
func TestBadFrontMatter(t *testing.T) {
	fine := "name: s"
	for name, tt := range map[string]struct{ data, want string }{
		"empty":                  {"", "1: the first line must be ---"},
		"no front matter":        {"# Title\n", "1: the first line must be ---"},
		"no end":                 {"---\nname: s\ndescription: d\n", "1: the line --- that closes the front matter is missing"},
		"no text":                {"---\nname: s\ndescription: d\n---\n \n", "5: the text after the front matter is missing"},
		"nothing in it":          {"---\n---\ntext\n", "2: the front matter has no keys"},
		"a list":                 {head("- a"), "2: the front matter has no keys"},
		"no name":                {head("description: d"), "1: name is missing"},
		"no description":         {head(fine), "1: description is missing"},
		"name of another folder": {head("name: t", "description: d"), `2: name: t differs from the name of its directory, "s"`},
		"name in capitals":       {head("name: S", "description: d"), `2: name: "S" does not consist of lower-case letters`},
		"name upwards":           {head("name: ../s", "description: d"), `2: name: "../s" does not consist of`},
		"two hyphens":            {head("name: s--s", "description: d"), `2: name: "s--s" does not consist of`},
		"hyphen at the end":      {head("name: s-", "description: d"), `2: name: "s-" does not consist of`},
		"name is long":           {head("name: "+strings.Repeat("s", 65), "description: d"), "2: name: "},
		"name is a list":         {head("name: [s]", "description: d"), "2: name: must be a string"},
		"name is empty":          {head("name:", "description: d"), "2: name: empty"},
		"description is empty":   {head(fine, `description: " "`), "3: description: empty"},
		"description is long":    {head(fine, "description: "+strings.Repeat("x", 1025)), "3: description: 1025 characters exceed the maximum of 1024"},
		"description steers":     {head(fine, `description: "\e[31m"`), "3: description: contains the unsafe character U+001B"},
		"description, raw":       {head(fine, "description: \x1b[31m"), "3: the front matter contains the unsafe character U+001B"},
		"description turned":     {head(fine, "description: \u202egnp"), "3: the front matter contains the unsafe character U+202E"},
		"description with tags":  {head(fine, "description: hi\U000E0041"), "3: the front matter contains the unsafe character U+E0041"},
		"description with NEL":   {head(fine, `description: "a\u0085b\Nc"`), "3: description: contains the unsafe character U+0085"},
		"colon in a value":       {head(fine, "description: use: this"), `3: mapping values are not allowed in this context; quote a value that contains ": "`},
		"an alias":               {head("name: &a s", "description: *a"), "3: description: aliases are not supported"},
		"a key twice":            {head(fine, fine, "description: d"), `3: duplicate key "name"; the first is in line 2`},
		"a key that is a list":   {head(fine, "description: d", "[a]: b"), "4: a key is not a string"},
		"license is a map":       {head(fine, "description: d", "license: {a: b}"), "4: license: must be a string"},
		"compatibility is long":  {head(fine, "description: d", "compatibility: "+strings.Repeat("x", 501)), "4: compatibility: 501 characters"},
		"tools are a map":        {head(fine, "description: d", "allowed-tools: {Bash: yes}"), "4: allowed-tools: must be a string"},
		"metadata is a text":     {head(fine, "description: d", "metadata: x"), "4: metadata: must be a mapping"},
		"not UTF-8":              {"---\nname: s\ndescription: \xff\n---\nx\n", "0: not valid UTF-8"},
		"NUL in the text":        {good + "a\x00b\n", "6: the text contains the unsafe character U+0000"},
		"a sequence in the text": {good + "\x1b]0;title\a\n", "6: the text contains the unsafe character U+001B"},
		"too large":              {good + strings.Repeat("x", skills.MaxText), "0: larger than 64 KB"},
		"large front matter":     {head("#" + strings.Repeat("x", skills.MaxFrontMatter)), "1: the front matter is larger than 16 KB"},
		"two at once":            {head("name: T", "description:"), "2: name: \"T\"\n3: description: empty"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := skills.Parse("s", []byte(tt.data))
			var found []skills.Problem
			for _, p := range problems {
				if !p.Warning {
					found = append(found, p)
				}
			}
			want := strings.Split(tt.want, "\n")
			if len(found) != len(want) {
				t.Fatalf("%v, want %d", problems, len(want))
			}
			for i, p := range found {
				p.File = "f"
				got := p.String()
				if p.Line == 0 {
					got = "f:0: " + p.Text
				}
				if !strings.HasPrefix(got, "f:"+want[i]) {
					t.Errorf("%s, want %s", got, want[i])
				}
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	for name, tt := range map[string]struct{ line, want string }{
		"an unknown key":      {"allowed_tools: Bash", `4: warning: unknown key "allowed_tools"; did you mean allowed-tools?`},
		"tools without value": {"allowed-tools:", "4: warning: allowed-tools: an empty value restricts nothing"},
		"no such tool":        {"allowed-tools: Bash reed", `4: warning: allowed-tools: "reed" is not a tool of mini; it has an effect only if the configuration adds a tool of this name; did you mean read?`},
		"nothing here":        {"allowed-tools: Bash Grep", `4: warning: allowed-tools: "Grep" is not a tool of mini`},
		"no name of a tool":   {"allowed-tools: [Bash, 'a b']", `4: warning: allowed-tools: "a b" is not a tool name`},
		"brackets":            {"allowed-tools: Read(src/*)", `4: warning: allowed-tools: "Read(src/*)": patterns in parentheses apply to bash only`},
		"metadata of lists":   {"metadata: {a: [b]}", "4: warning: metadata: ignored, because"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := skills.Parse("s", []byte(head("name: s", "description: d", tt.line)))
			if len(problems) != 1 {
				t.Fatal(problems)
			}
			p := problems[0]
			p.File = "f"
			if !strings.HasPrefix(p.String(), "f:4: warning: "+strings.TrimPrefix(tt.want, "4: warning: ")) {
				t.Errorf("%s\nwant %s", p, tt.want)
			}
		})
	}
	if _, problems := skills.Parse("s", []byte(good+strings.Repeat("x\n", 600))); len(problems) != 1 || !problems[0].Warning {
		t.Errorf("600 lines: %v", problems)
	}
}

// FuzzParse checks that valid skills follow the rules and messages are bounded.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		good, head("name: s", "description: d", "allowed-tools: Bash(git:*) Read", "metadata: {a: b}"), "---\n? [a]\n: *b\n---\n",
		head("name: &a s", "description: *a"), head("!!binary name: s"), "---\r\n---\r\n", head("<<: {name: s}", "description: |", "  x"), head("name: s # c", "description: 'a", "", "  b'"),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		start := time.Now()
		s, problems := skills.Parse("s", data)
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
		bad := false
		for _, p := range problems {
			bad = bad || !p.Warning
			if p.Line < 0 || len(p.Text) > 2000 || strings.ContainsAny(p.Text, "\n\r\x1b\x00") {
				t.Errorf("a problem %q", p)
			}
		}
		if bad {
			return
		}
		if s.Name != "s" || s.Description == "" || utf8.RuneCountInString(s.Description) > skills.MaxDescription || strings.TrimSpace(s.Text) == "" {
			t.Errorf("%+v", s)
		}
		if strings.ContainsAny(s.Description+s.Version+s.License+s.Compatibility, "\n\r\x1b\x00\u202e\u2028") || strings.ContainsAny(s.Text, "\x1b\x00") {
			t.Errorf("it steers: %+v", s)
		}
		s.Permissions()
	})
}

func TestPermissions(t *testing.T) {
	for name, tt := range map[string]struct {
		allowed []string
		want    skills.Permissions
	}{
		"nothing is said":     {nil, skills.Permissions{Unrestricted: true}},
		"none":                {[]string{}, skills.Permissions{Tools: []string{"skill"}}},
		"everything":          {[]string{"Bash", "*"}, skills.Permissions{Unrestricted: true}},
		"other systems'":      {[]string{"Bash", "Read", "MultiEdit", "Task", "WebSearch"}, skills.Permissions{Bash: true, Tools: []string{"delegate", "edit", "read", "search", "skill"}}},
		"own":                 {[]string{"note", "notes", "goal"}, skills.Permissions{Tools: []string{"goal", "note", "notes", "skill"}}},
		"patterns":            {[]string{"Bash(git add:*)", "bash(ls *)"}, skills.Permissions{Bash: true, Patterns: []string{"git add:*", "ls *"}, Tools: []string{"skill"}}},
		"all commands":        {[]string{"Bash(git:*)", "Bash"}, skills.Permissions{Bash: true, Tools: []string{"skill"}}},
		"all, in brackets":    {[]string{"Bash(*)"}, skills.Permissions{Bash: true, Tools: []string{"skill"}}},
		"looking is no shell": {[]string{"Grep", "Glob"}, skills.Permissions{Tools: []string{"skill"}}},
		"a tool of a server":  {[]string{"mcp__db__query"}, skills.Permissions{Tools: []string{"mcp__db__query", "skill"}}},
		"hostile":             {[]string{"", "(", "Bash(", "../x", "a\x00b", strings.Repeat("x", 99)}, skills.Permissions{Bash: true, Tools: []string{"skill"}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := skills.Skill{AllowedTools: tt.allowed}.Permissions()
			g.Warnings = nil
			if diff := cmp.Diff(tt.want, g, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

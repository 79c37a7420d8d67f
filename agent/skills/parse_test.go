package skills_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/minibench/mini/agent/skills"
)

const good = "---\nname: s\ndescription: it helps\n---\nDo it.\n"

// head is a SKILL.md with these lines in its front matter.
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

// Each line of want is one problem: its line, its text.
func TestBadFrontMatter(t *testing.T) {
	fine := "name: s"
	for name, tt := range map[string]struct{ data, want string }{
		"empty":                  {"", "1: the first line is not ---"},
		"no front matter":        {"# Title\n", "1: the first line is not ---"},
		"no end":                 {"---\nname: s\ndescription: d\n", "1: the line --- behind the front matter is missing"},
		"no text":                {"---\nname: s\ndescription: d\n---\n \n", "5: there is no text behind"},
		"nothing in it":          {"---\n---\ntext\n", "2: the front matter has no keys"},
		"a list":                 {head("- a"), "2: the front matter has no keys"},
		"no name":                {head("description: d"), "1: name is missing"},
		"no description":         {head(fine), "1: description is missing"},
		"name of another folder": {head("name: t", "description: d"), `2: name: t is not the name of its folder, "s"`},
		"name in capitals":       {head("name: S", "description: d"), `2: name: "S" is not made of small letters`},
		"name upwards":           {head("name: ../s", "description: d"), `2: name: "../s" is not made of`},
		"two hyphens":            {head("name: s--s", "description: d"), `2: name: "s--s" is not made of`},
		"hyphen at the end":      {head("name: s-", "description: d"), `2: name: "s-" is not made of`},
		"name is long":           {head("name: "+strings.Repeat("s", 65), "description: d"), "2: name: "},
		"name is a list":         {head("name: [s]", "description: d"), "2: name: a text is needed"},
		"name is empty":          {head("name:", "description: d"), "2: name: it is empty"},
		"description is empty":   {head(fine, `description: " "`), "3: description: it is empty"},
		"description is long":    {head(fine, "description: "+strings.Repeat("x", 1025)), "3: description: 1025 characters are more than 1024"},
		"description steers":     {head(fine, `description: "\e[31m"`), "3: description: there is U+001B in it"},
		"description, raw":       {head(fine, "description: \x1b[31m"), "3: there is U+001B in the front matter"},
		"description turned":     {head(fine, "description: \u202egnp"), "3: there is U+202E in the front matter"},
		"description with tags":  {head(fine, "description: hi\U000E0041"), "3: there is U+E0041 in the front matter"},
		"description with NEL":   {head(fine, `description: "a\u0085b\Nc"`), "3: description: there is U+0085 in it"},
		"colon in a value":       {head(fine, "description: use: this"), `3: mapping values are not allowed in this context; a value with ": "`},
		"an alias":               {head("name: &a s", "description: *a"), "3: description: aliases are not read here"},
		"a key twice":            {head(fine, fine, "description: d"), `3: "name" is there twice; first in line 2`},
		"a key that is a list":   {head(fine, "description: d", "[a]: b"), "4: a key is no text"},
		"license is a map":       {head(fine, "description: d", "license: {a: b}"), "4: license: a text is needed"},
		"compatibility is long":  {head(fine, "description: d", "compatibility: "+strings.Repeat("x", 501)), "4: compatibility: 501 characters"},
		"tools are a map":        {head(fine, "description: d", "allowed-tools: {Bash: yes}"), "4: allowed-tools: a text is needed"},
		"metadata is a text":     {head(fine, "description: d", "metadata: x"), "4: metadata: keys and values are needed"},
		"not UTF-8":              {"---\nname: s\ndescription: \xff\n---\nx\n", "3: it is not UTF-8"},
		"not UTF-8, in the text": {good + "\n\xc3(\n", "7: it is not UTF-8"},
		"NUL in the text":        {good + "a\x00b\n", "6: there is U+0000 in the text"},
		"a sequence in the text": {good + "\x1b]0;title\a\n", "6: there is U+001B in the text"},
		"too large":              {good + strings.Repeat("x", skills.MaxText), "0: it is larger than 64 KB"},
		"large front matter":     {head("#" + strings.Repeat("x", skills.MaxHead)), "1: the front matter is larger than 16 KB"},
		"two at once":            {head("name: T", "description:"), "2: name: \"T\"\n3: description: it is empty"},
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
		"tools without value": {"allowed-tools:", "4: warning: allowed-tools: it is empty, which restricts nothing"},
		"no such tool":        {"allowed-tools: Bash reed", `4: warning: allowed-tools: "reed" is no tool of mini's; it counts where the configuration has a tool of this name; did you mean read?`},
		"nothing here":        {"allowed-tools: Bash Grep", `4: warning: allowed-tools: "Grep" is nothing that mini has`},
		"no name of a tool":   {"allowed-tools: [Bash, 'a b']", `4: warning: allowed-tools: "a b" is no name of a tool`},
		"brackets":            {"allowed-tools: Read(src/*)", `4: warning: allowed-tools: "Read(src/*)": what stands in brackets is heeded for bash only`},
		"metadata of lists":   {"metadata: {a: [b]}", "4: warning: metadata: only texts are read"},
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

// FuzzParse: whatever the file, what is in order keeps the rules, and messages are
// bounded.
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
		s.Grant()
	})
}

func TestGrant(t *testing.T) {
	for name, tt := range map[string]struct {
		allowed []string
		want    skills.Grant
	}{
		"nothing is said":     {nil, skills.Grant{Any: true}},
		"none":                {[]string{}, skills.Grant{Tools: []string{"skill"}}},
		"everything":          {[]string{"Bash", "*"}, skills.Grant{Any: true}},
		"other systems'":      {[]string{"Bash", "Read", "MultiEdit", "Task", "WebSearch"}, skills.Grant{Bash: true, Tools: []string{"delegate", "edit", "read", "search", "skill"}}},
		"own":                 {[]string{"note", "notes", "goal"}, skills.Grant{Tools: []string{"goal", "note", "notes", "skill"}}},
		"patterns":            {[]string{"Bash(git add:*)", "bash(ls *)"}, skills.Grant{Bash: true, Patterns: []string{"git add:*", "ls *"}, Tools: []string{"skill"}}},
		"all commands":        {[]string{"Bash(git:*)", "Bash"}, skills.Grant{Bash: true, Tools: []string{"skill"}}},
		"all, in brackets":    {[]string{"Bash(*)"}, skills.Grant{Bash: true, Tools: []string{"skill"}}},
		"looking is no shell": {[]string{"Grep", "Glob"}, skills.Grant{Tools: []string{"skill"}}},
		"a tool of a server":  {[]string{"mcp__db__query"}, skills.Grant{Tools: []string{"mcp__db__query", "skill"}}},
		"hostile":             {[]string{"", "(", "Bash(", "../x", "a\x00b", strings.Repeat("x", 99)}, skills.Grant{Bash: true, Tools: []string{"skill"}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := skills.Skill{AllowedTools: tt.allowed}.Grant()
			g.Notes = nil
			if diff := cmp.Diff(tt.want, g, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
	g := skills.GrantOf([]string{"Read"})
	if !g.Allows("read") || !g.Allows("skill") || g.Allows("write") || !(skills.Grant{Any: true}).Allows("write") {
		t.Errorf("%+v", g)
	}
}

package skills_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/minibench/mini/agent/tools/skills"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// writeFile writes a file and creates its directories.
func writeFile(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

// skillText returns a valid SKILL.md with this name.
func skillText(name string) string {
	return "---\nname: " + name + "\ndescription: about " + name + "\n---\ntext of " + name + "\n"
}

// TestSameName checks that the first of two valid skills with the same name is used.
func TestSameName(t *testing.T) {
	one, two, three := t.TempDir(), t.TempDir(), t.TempDir()
	writeFile(t, one+"/a/SKILL.md", skillText("a"))
	writeFile(t, one+"/b/SKILL.md", skillText("x"))
	writeFile(t, two+"/a/SKILL.md", skillText("a"))
	writeFile(t, two+"/b/SKILL.md", skillText("b"))
	writeFile(t, two+"/notes.txt", "no skill")
	writeFile(t, two+"/.git/config", "no skill")
	writeFile(t, three+"/a/SKILL.md", skillText("a")) // the directory of a single skill
	set := skills.Load(skills.DirSource(one), skills.DirSource(two), skills.DirSource(three+"/a"), skills.ShippedSource())
	for name, source := range map[string]string{"a": one, "b": two, "large-repositories": "shipped"} {
		if s, ok := set.Find(name); !ok || s.Source != source {
			t.Errorf("%s is of %q", name, s.Source)
		}
	}
	var got []string
	for _, p := range set.Problems {
		got = append(got, strings.NewReplacer(one, "ONE", two, "TWO", three, "THREE").Replace(p.String()))
	}
	want := "ONE/b/SKILL.md:2: name: x differs from the name of its directory, \"b\"\n" +
		"TWO/a/SKILL.md: warning: the skill of this name in ONE is used instead of this one\n" +
		"THREE/a/SKILL.md: warning: the skill of this name in ONE is used instead of this one"
	assert.Equal(t, want, strings.Join(got, "\n"))
}

func TestFilesOfSkills(t *testing.T) {
	for name, tt := range map[string]struct {
		create func(t *testing.T, dir string) // dir is the directory of the skill s
		want   string                         // part of the problem; empty if there is none
		has    string
	}{
		"all kinds": {func(t *testing.T, dir string) {
			writeFile(t, dir+"/scripts/run.sh", "x")
			writeFile(t, dir+"/references/deep/er/a b.md", "x")
			writeFile(t, dir+"/forms.md", "x")
			writeFile(t, dir+"/tool", "x")
			require.NoError(t, os.Chmod(dir+"/tool", 0o700))
			writeFile(t, dir+"/.hidden", "x")
			writeFile(t, dir+"/scripts/__pycache__/x.pyc", "x")
		}, "", "forms.md references/deep/er/a b.md scripts/run.sh* tool*"},
		"a link inside": {func(t *testing.T, dir string) {
			writeFile(t, dir+"/references/a.md", "x")
			link(t, "a.md", dir+"/references/b.md")
		}, "", "references/a.md references/b.md"},
		"a link out":        {func(t *testing.T, dir string) { link(t, "/etc/passwd", dir+"/passwd") }, "passwd: the symbolic link leads", ""},
		"a link upwards":    {func(t *testing.T, dir string) { writeFile(t, dir+"/../x", "x"); link(t, "../x", dir+"/x") }, "x: the symbolic link leads", ""},
		"a link to nothing": {func(t *testing.T, dir string) { link(t, "nothing", dir+"/x") }, "x: cannot be read: no such file", ""},
		"a link in a ring":  {func(t *testing.T, dir string) { writeFile(t, dir+"/scripts/a", ""); link(t, ".", dir+"/scripts/b") }, "scripts/b: cannot be read: not a regular file", ""},
		"the text is a link": {func(t *testing.T, dir string) {
			writeFile(t, dir+"/../SKILL.md.away", skillText("s"))
			_ = os.Remove(dir + "/SKILL.md")
			link(t, "../SKILL.md.away", dir+"/SKILL.md")
		}, "SKILL.md: the symbolic link leads", ""},
		"a pipe": {func(t *testing.T, dir string) {
			require.NoError(t, syscall.Mkfifo(dir+"/pipe", 0o600))
		}, "pipe: cannot be read: not a regular file", ""},
		"the text is a folder": {func(t *testing.T, dir string) { _ = os.Remove(dir + "/SKILL.md"); writeFile(t, dir+"/SKILL.md/x", "") }, "SKILL.md: cannot be read: not a regular file", ""},
		"a name that steers":   {func(t *testing.T, dir string) { writeFile(t, dir+"/a\x1b[31m", "") }, "a\x1b[31m: the name has control characters", ""},
		"a name of two lines":  {func(t *testing.T, dir string) { writeFile(t, dir+"/a\nb", "") }, "a\nb: the name has control characters", ""},
		"a name that is none":  {func(t *testing.T, dir string) { writeFile(t, dir+"/\xff", "") }, "\xff: the name has control characters", ""},
		"too many": {func(t *testing.T, dir string) {
			for i := range skills.MaxFiles + 1 {
				writeFile(t, fmt.Sprintf("%s/%d", dir, i), "")
			}
		}, ": the skill has more than 200 files", ""},
		"too large": {func(t *testing.T, dir string) {
			writeFile(t, dir+"/large", "")
			require.NoError(t, os.Truncate(dir+"/large", skills.MaxBytes+1))
		}, ": the files have more than 8 MB in total", ""},
		"too deep": {func(t *testing.T, dir string) { writeFile(t, dir+strings.Repeat("/d", skills.MaxDepth+1)+"/x", "") }, "nested more than 8 deep", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir() + "/s"
			writeFile(t, dir+"/SKILL.md", skillText("s"))
			tt.create(t, dir)
			set := skills.Load(skills.DirSource(filepath.Dir(dir)))
			s, ok := set.Find("s")
			if tt.want == "" {
				var has []string
				for _, f := range s.Files {
					star := ""
					if f.Executable {
						star = "*"
					}
					has = append(has, f.Path+star)
				}
				if !ok || len(set.Problems) > 0 || strings.Join(has, " ") != tt.has {
					t.Errorf("found %t, %v, files %v", ok, set.Problems, has)
				}
				return
			}
			if ok || len(set.Problems) != 1 || !strings.Contains(set.Problems[0].String(), tt.want) {
				t.Errorf("found %t, %q", ok, set.Problems)
			}
			_, err := set.Select([]string{"s"})
			assert.ErrorContains(t, err, `invalid skill "s"`)
		})
	}
}

func link(t *testing.T, target, path string) {
	t.Helper()
	require.NoError(t, os.Symlink(target, path))
}

// TestFoldersOfSkills checks problems with whole directories.
func TestFoldersOfSkills(t *testing.T) {
	outside := t.TempDir()
	writeFile(t, outside+"/s/SKILL.md", skillText("s"))
	dir := t.TempDir()
	link(t, outside+"/s", dir+"/s")
	writeFile(t, dir+"/empty/x", "")
	writeFile(t, dir+"/in/SKILL.md", skillText("in"))
	link(t, "in", dir+"/same")
	writeFile(t, dir+"/file", "")
	link(t, "file", dir+"/linked-file")
	set := skills.Load(skills.DirSource(dir), skills.DirSource(dir+"/nowhere"))
	var got []string
	for _, p := range set.Problems {
		got = append(got, strings.ReplaceAll(p.String(), dir, "DIR"))
	}
	want := []string{
		"DIR/empty: warning: SKILL.md is missing",
		"DIR/s: the symbolic link leads, or may lead, out of its directory",
		"DIR/same/SKILL.md:2: name: in differs from the name of its directory, \"same\"",
		"DIR/nowhere: cannot be read: no such file or directory",
	}
	assert.Equal(t, strings.Join(want, "\n"), strings.Join(got, "\n"))
	many := fstest.MapFS{}
	for i := range skills.MaxSkills + 5 {
		many[fmt.Sprintf("s%03d/SKILL.md", i)] = &fstest.MapFile{Data: []byte(skillText(fmt.Sprintf("s%03d", i)))}
	}
	set = skills.Load(skills.Source{Name: "many", Files: many})
	if len(set.Skills) != skills.MaxSkills || len(set.Problems) != 1 || !strings.Contains(set.Problems[0].Text, "more than 200 directories") {
		t.Errorf("%d skills, %v", len(set.Skills), set.Problems)
	}
}

func TestSelect(t *testing.T) {
	set := skills.Load(skills.ShippedSource())
	for name, want := range map[string]string{
		"bisecting-regression": "; did you mean bisecting-regressions?",
		"large":                `there is no skill "large"; did you mean large-repositories?`,
		"planning":             "; did you mean planning-with-files?",
		"bisect":               "; did you mean bisecting-regressions?",
		"zzz":                  `there is no skill "zzz"; see mini skills list`,
		"\x1b[31m":             `there is no skill "\x1b[31m"; see mini skills list`,
	} {
		_, err := set.Select([]string{name})
		assert.ErrorContains(t, err, want, "%q", name)
	}
	selected, err := set.Select([]string{"large-repositories", skills.All, "large-repositories"})
	if err != nil || len(selected) != len(set.Skills) {
		t.Errorf("%d, %v", len(selected), err)
	}
	if selected, err = set.Select(nil); err != nil || len(selected) != 0 {
		t.Errorf("%v, %v", selected, err)
	}
}

// TestDigest checks that the digest changes with each input.
func TestDigest(t *testing.T) {
	dir := t.TempDir() + "/s"
	sums := map[string]bool{}
	sum := func() {
		s, _ := skills.Load(skills.DirSource(filepath.Dir(dir))).Find("s")
		text := s.Digest()
		if len(text) != 64 || sums[text] {
			t.Error(text)
		}
		sums[text] = true
	}
	writeFile(t, dir+"/SKILL.md", skillText("s"))
	sum()
	writeFile(t, dir+"/a", "1")
	sum()
	writeFile(t, dir+"/a", "2")
	sum()
	writeFile(t, dir+"/SKILL.md", skillText("s")+"more\n")
	sum()
}

// TestShipped checks that mini's skills are valid and cause no warnings.
func TestShipped(t *testing.T) {
	set := skills.Load(skills.ShippedSource())
	for _, p := range set.Problems {
		t.Error(p)
	}
	var names []string
	for _, s := range set.Skills {
		names = append(names, s.Name)
		if s.Version == "" || s.AllowedTools == nil || len(s.Text) > 8<<10 {
			t.Errorf("%s: version %q, tools %v, %d bytes", s.Name, s.Version, s.AllowedTools, len(s.Text))
		}
	}
	want := []string{"bisecting-regressions", "large-repositories", "planning-with-files"}
	assert.Equal(t, want, names, "names")
}

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
			assert.Equal(t, 0, len(problems), "%v", problems)
			assert.NoDiff(t, cmp.Diff(tt.want, s, cmpopts.IgnoreUnexported(skills.Skill{})))
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
			require.Equal(t, len(want), len(found), "%v", problems)
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
			require.Equal(t, 1, len(problems), "%v", problems)
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
			assert.NoDiff(t, cmp.Diff(tt.want, g, cmpopts.EquateEmpty()))
		})
	}
}

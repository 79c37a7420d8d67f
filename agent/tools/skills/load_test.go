package skills_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/minibench/mini/agent/tools/skills"
)

// writeFile writes a file and creates its directories.
func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
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
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
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
			if err := os.Chmod(dir+"/tool", 0o700); err != nil {
				t.Fatal(err)
			}
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
			if err := syscall.Mkfifo(dir+"/pipe", 0o600); err != nil {
				t.Fatal(err)
			}
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
			if err := os.Truncate(dir+"/large", skills.MaxBytes+1); err != nil {
				t.Fatal(err)
			}
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
			if _, err := set.Select([]string{"s"}); err == nil || !strings.Contains(err.Error(), `invalid skill "s"`) {
				t.Errorf("%v", err)
			}
		})
	}
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
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
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
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
		if _, err := set.Select([]string{name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
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

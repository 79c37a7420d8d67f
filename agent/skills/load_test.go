package skills_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/minibench/mini/agent/skills"
)

// put writes a file, and the folders around it.
func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func named(name string) string {
	return "---\nname: " + name + "\ndescription: about " + name + "\n---\ntext of " + name + "\n"
}

// TestOrder: of two with one name the first counts; one that is not in order does
// not.
func TestOrder(t *testing.T) {
	one, two, three := t.TempDir(), t.TempDir(), t.TempDir()
	put(t, one+"/a/SKILL.md", named("a"))
	put(t, one+"/b/SKILL.md", named("x"))
	put(t, two+"/a/SKILL.md", named("a"))
	put(t, two+"/b/SKILL.md", named("b"))
	put(t, two+"/notes.txt", "no skill")
	put(t, two+"/.git/config", "no skill")
	put(t, three+"/a/SKILL.md", named("a")) // the folder of one
	set := skills.Load(skills.Folder(one), skills.Folder(two), skills.Folder(three+"/a"), skills.Shipped())
	for name, source := range map[string]string{"a": one, "b": two, "large-repositories": "shipped"} {
		if s, ok := set.Find(name); !ok || s.Source != source {
			t.Errorf("%s is of %q", name, s.Source)
		}
	}
	var got []string
	for _, p := range set.Problems {
		got = append(got, strings.NewReplacer(one, "ONE", two, "TWO", three, "THREE").Replace(p.String()))
	}
	want := "ONE/b/SKILL.md:2: name: x is not the name of its folder, \"b\"\n" +
		"TWO/a/SKILL.md: warning: the skill of this name in ONE counts, not this one\n" +
		"THREE/a/SKILL.md: warning: the skill of this name in ONE counts, not this one"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

func TestFilesOfSkills(t *testing.T) {
	for name, tt := range map[string]struct {
		make func(t *testing.T, dir string) // dir is the folder of the skill s
		want string                         // of the problem; empty is none
		has  string
	}{
		"all kinds": {func(t *testing.T, dir string) {
			put(t, dir+"/scripts/run.sh", "x")
			put(t, dir+"/references/deep/er/a b.md", "x")
			put(t, dir+"/forms.md", "x")
			put(t, dir+"/tool", "x")
			if err := os.Chmod(dir+"/tool", 0o700); err != nil {
				t.Fatal(err)
			}
			put(t, dir+"/.hidden", "x")
			put(t, dir+"/scripts/__pycache__/x.pyc", "x")
		}, "", "forms.md references/deep/er/a b.md scripts/run.sh* tool*"},
		"a link inside": {func(t *testing.T, dir string) {
			put(t, dir+"/references/a.md", "x")
			link(t, "a.md", dir+"/references/b.md")
		}, "", "references/a.md references/b.md"},
		"a link out":        {func(t *testing.T, dir string) { link(t, "/etc/passwd", dir+"/passwd") }, "passwd: it is a symbolic link that leads", ""},
		"a link upwards":    {func(t *testing.T, dir string) { put(t, dir+"/../x", "x"); link(t, "../x", dir+"/x") }, "x: it is a symbolic link that leads", ""},
		"a link to nothing": {func(t *testing.T, dir string) { link(t, "nothing", dir+"/x") }, "x: it cannot be read: no such file", ""},
		"a link in a ring":  {func(t *testing.T, dir string) { put(t, dir+"/scripts/a", ""); link(t, ".", dir+"/scripts/b") }, "scripts/b: it cannot be read: it is no plain file", ""},
		"the text is a link": {func(t *testing.T, dir string) {
			put(t, dir+"/../SKILL.md.away", named("s"))
			_ = os.Remove(dir + "/SKILL.md")
			link(t, "../SKILL.md.away", dir+"/SKILL.md")
		}, "SKILL.md: it is a symbolic link that leads", ""},
		"a pipe": {func(t *testing.T, dir string) {
			if err := syscall.Mkfifo(dir+"/pipe", 0o600); err != nil {
				t.Fatal(err)
			}
		}, "pipe: it cannot be read: it is no plain file", ""},
		"the text is a folder": {func(t *testing.T, dir string) { _ = os.Remove(dir + "/SKILL.md"); put(t, dir+"/SKILL.md/x", "") }, "SKILL.md: it cannot be read: it is no plain file", ""},
		"a name that steers":   {func(t *testing.T, dir string) { put(t, dir+"/a\x1b[31m", "") }, "a\x1b[31m: a name with characters", ""},
		"a name of two lines":  {func(t *testing.T, dir string) { put(t, dir+"/a\nb", "") }, "a\nb: a name with characters", ""},
		"a name that is none":  {func(t *testing.T, dir string) { put(t, dir+"/\xff", "") }, "\xff: a name with characters", ""},
		"too many": {func(t *testing.T, dir string) {
			for i := range skills.MaxFiles + 1 {
				put(t, fmt.Sprintf("%s/%d", dir, i), "")
			}
		}, ": it has more than 200 files", ""},
		"too large": {func(t *testing.T, dir string) {
			put(t, dir+"/large", "")
			if err := os.Truncate(dir+"/large", skills.MaxBytes+1); err != nil {
				t.Fatal(err)
			}
		}, ": its files are larger than 8 MB together", ""},
		"too deep": {func(t *testing.T, dir string) { put(t, dir+strings.Repeat("/d", skills.MaxDepth+1)+"/x", "") }, "more than 8 folders inside each other", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir() + "/s"
			put(t, dir+"/SKILL.md", named("s"))
			tt.make(t, dir)
			set := skills.Load(skills.Folder(filepath.Dir(dir)))
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
			if _, err := set.Use([]string{"s"}); err == nil || !strings.Contains(err.Error(), `the skill "s" is not in order`) {
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

// TestFoldersOfSkills: what is wrong with a whole folder.
func TestFoldersOfSkills(t *testing.T) {
	outside := t.TempDir()
	put(t, outside+"/s/SKILL.md", named("s"))
	dir := t.TempDir()
	link(t, outside+"/s", dir+"/s")
	put(t, dir+"/empty/x", "")
	put(t, dir+"/in/SKILL.md", named("in"))
	link(t, "in", dir+"/same")
	put(t, dir+"/file", "")
	link(t, "file", dir+"/linked-file")
	set := skills.Load(skills.Folder(dir), skills.Folder(dir+"/nowhere"), skills.Source{Name: "own", Files: os.DirFS(dir)})
	var got []string
	for _, p := range set.Problems {
		got = append(got, strings.ReplaceAll(p.String(), dir, "DIR"))
	}
	want := []string{
		"DIR/empty: warning: there is no SKILL.md in it",
		"DIR/s: it is a symbolic link that leads, or might lead, out of its folder",
		"DIR/same/SKILL.md:2: name: in is not the name of its folder, \"same\"",
		"DIR/nowhere: it cannot be read: no such file or directory",
		"own/empty: warning: there is no SKILL.md in it",
		"own/in/SKILL.md: warning: the skill of this name in DIR counts, not this one",
		"own/linked-file: it is a symbolic link that leads, or might lead, out of its folder",
		"own/s: it is a symbolic link that leads, or might lead, out of its folder",
		"own/same: it is a symbolic link that leads, or might lead, out of its folder",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	many := fstest.MapFS{}
	for i := range skills.MaxSkills + 5 {
		many[fmt.Sprintf("s%03d/SKILL.md", i)] = &fstest.MapFile{Data: []byte(named(fmt.Sprintf("s%03d", i)))}
	}
	set = skills.Load(skills.Source{Name: "many", Files: many})
	if len(set.Skills) != skills.MaxSkills || len(set.Problems) != 1 || !strings.Contains(set.Problems[0].Text, "more than 200 folders") {
		t.Errorf("%d skills, %v", len(set.Skills), set.Problems)
	}
}

func TestUse(t *testing.T) {
	set := skills.Load(skills.Shipped())
	for name, want := range map[string]string{
		"bisecting-regression": "; did you mean bisecting-regressions?",
		"large":                `there is no skill "large"; did you mean large-repositories?`,
		"planning":             "; did you mean planning-with-files?",
		"bisect":               "; did you mean bisecting-regressions?",
		"zzz":                  `there is no skill "zzz"; see mini skills list`,
		"\x1b[31m":             `there is no skill "\x1b[31m"; see mini skills list`,
	} {
		if _, err := set.Use([]string{name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
	use, err := set.Use([]string{"large-repositories", skills.All, "large-repositories"})
	if err != nil || len(use) != len(set.Skills) {
		t.Errorf("%d, %v", len(use), err)
	}
	if use, err = set.Use(nil); err != nil || len(use) != 0 {
		t.Errorf("%v, %v", use, err)
	}
}

// TestSum: it changes with whatever the skill is made of.
func TestSum(t *testing.T) {
	dir := t.TempDir() + "/s"
	sums := map[string]bool{}
	sum := func() {
		s, _ := skills.Load(skills.Folder(filepath.Dir(dir))).Find("s")
		text, err := s.Sum()
		if err != nil || len(text) != 64 || sums[text] {
			t.Errorf("%s, %v", text, err)
		}
		sums[text] = true
	}
	put(t, dir+"/SKILL.md", named("s"))
	sum()
	put(t, dir+"/a", "1")
	sum()
	put(t, dir+"/a", "2")
	sum()
	put(t, dir+"/SKILL.md", named("s")+"more\n")
	sum()
	s, _ := skills.Load(skills.Folder(filepath.Dir(dir))).Find("s")
	put(t, dir+"/a", "larger")
	if _, err := s.Sum(); err == nil || !strings.Contains(err.Error(), "read a of skill s: its size has changed") {
		t.Errorf("a file that has grown: %v", err)
	}
}

package skills_test

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/minibench/mini/agent/skills"
)

// script is the path of one that ships.
func script(t *testing.T, skill, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("shipped", skill, "scripts", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is missing", p)
		}
	}
}

// run runs a program in a folder, and gives its output and exit code.
func run(t *testing.T, dir string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...) //nolint:gosec // the test's own
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "TMPDIR="+t.TempDir(), "LC_ALL=C.UTF-8",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out), 0
}

// history is a repository of 40 commits whose program breaks at the 27th; 30 to 32
// do not build.
func history(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	out, code := run(t, dir, "bash", "-c", `set -e
git init -q -b main .
for i in $(seq 40); do
  if [ $i -ge 27 ]; then echo 'echo wrong' > program.sh; else echo 'echo right' > program.sh; fi
  if [ $i -ge 30 ] && [ $i -le 32 ]; then echo 'exit 125 # does not build' > program.sh; fi
  echo $i > number.txt
  git add -A; git commit -qm "change $i"
done
echo mine >> number.txt; echo new > untracked`)
	if code != 0 {
		t.Fatal(out)
	}
	return dir
}

func TestBisect(t *testing.T) {
	needs(t, "bash", "git")
	bisect := script(t, "bisecting-regressions", "bisect.sh")
	origin := history(t)
	check := []string{"--", "bash", "-c", `out=$(bash program.sh) || exit $?; [ "$out" = right ]`}
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"good is looked for", check, 0, `first bad commit, after \d+ runs:\ncommit [0-9a-f]{40}\nauthor a, .*\n\n    change 27\n`},
		{"good is named", append([]string{"--good", "HEAD~39", "--timeout", "30"}, check...), 0, `change 27\n`},
		{"from an older one on", append([]string{"--good", "HEAD~20", "--bad", "HEAD~11"}, check...), 0, `change 27\n`},
		{"bad is good", append([]string{"--bad", "HEAD~30"}, check...), 1, `passes at the bad commit \([0-9a-f]+ change 10\)`},
		{"good is bad", append([]string{"--good", "HEAD~1"}, check...), 1, `does not pass at the good commit \([0-9a-f]+ change 39, exit 1\)`},
		{"good behind bad", append([]string{"--good", "HEAD", "--bad", "HEAD~3"}, check...), 1, `no ancestor`},
		{"bad cannot be judged", append([]string{"--bad", "HEAD~9"}, check...), 1, `says 125 \(cannot say\) at the bad commit`},
		{"it never worked", []string{"--", "false"}, 1, `no commit passes, back to the oldest \([0-9a-f]+ change 1, exit 1\)`},
		{"it hangs", []string{"--timeout", "0.2", "--good", "HEAD~1", "--", "sleep", "20"}, 1, `fails at .* \(exit 124\)\n.*does not pass at the good commit`},
		{"no such program", []string{"--", "no-such-program"}, 1, `cannot be run \(exit 127\)`},
		{"no such commit", []string{"--good", "v9", "--", "true"}, 1, `--good is no commit`},
		{"no command", []string{"--good", "HEAD"}, 2, `bisect.sh \[--good REV\]`},
		{"no such flag", []string{"--fast", "--", "true"}, 2, `bisect.sh \[--good REV\]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(origin)); err != nil {
				t.Fatal(err)
			}
			before, _ := run(t, dir, "bash", "-c", "git status --porcelain --branch; cat number.txt untracked; git worktree list; git branch -a; git rev-parse HEAD")
			out, code := run(t, dir, append([]string{"bash", bisect}, tt.args...)...)
			if code != tt.code || !regexp.MustCompile(tt.want).MatchString(out) {
				t.Errorf("exit %d:\n%s", code, out)
			}
			after, _ := run(t, dir, "bash", "-c", "git status --porcelain --branch; cat number.txt untracked; git worktree list; git branch -a; git rev-parse HEAD")
			if after != before {
				t.Errorf("it has left\n%s, where there was\n%s", after, before)
			}
		})
	}
	out, code := run(t, t.TempDir(), "bash", bisect, "--", "true")
	if code != 1 || !strings.Contains(out, "no git repository") {
		t.Errorf("outside of a repository: exit %d: %s", code, out)
	}
}

// TestBisectSkips: where the first bad commit hides among those that cannot be
// judged, they are named.
func TestBisectSkips(t *testing.T) {
	needs(t, "bash", "git")
	dir := t.TempDir()
	out, code := run(t, dir, "bash", "-c", `git init -q . && for i in 0 125 125 1; do echo "exit $i" > p.sh; git add -A; git commit -qm "ends with $i" --allow-empty; done`)
	if code != 0 {
		t.Fatal(out)
	}
	out, code = run(t, dir, "bash", script(t, "bisecting-regressions", "bisect.sh"), "--", "bash", "p.sh")
	if code != 1 || strings.Count(out, "ends with") < 4 || !strings.Contains(out, "cannot be told apart") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

func TestShrink(t *testing.T) {
	needs(t, "python3", "grep")
	shrink := script(t, "minimal-reproduction", "shrink.py")
	dir := t.TempDir()
	var b strings.Builder
	for i := range 500 {
		fmt.Fprintf(&b, "line %d of many, which say nothing\n", i)
		if i == 123 || i == 321 {
			fmt.Fprintf(&b, "some words, and NEEDLE%d among them\n", i)
		}
	}
	input := filepath.Join(dir, "in.txt")
	if err := os.WriteFile(input, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	check := []string{"--", "bash", "-c", `grep -q NEEDLE123 "$1" && grep -q NEEDLE321 "$1"`, "x"}
	for _, tt := range []struct {
		name string
		args []string
		code int
		left string
	}{
		{"by lines", append([]string{input}, check...), 0, "some words, and NEEDLE123 among them\nsome words, and NEEDLE321 among them\n"},
		{"by characters", append([]string{"--chars", input}, check...), 0, "NEEDLE123NEEDLE321"},
		{"the place of the file", []string{input, "--", "grep", "-q", "NEEDLE123", "@"}, 0, "some words, and NEEDLE123 among them\n"},
		{"it does not show", []string{input, "--", "grep", "-q", "nowhere"}, 1, ""},
		{"no command", []string{input}, 2, ""},
		{"no file", []string{dir + "/none", "--", "true"}, 2, ""},
		{"no such program", []string{input, "--", "no-such-program"}, 2, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, code := run(t, dir, append([]string{"python3", shrink}, tt.args...)...)
			left, err := os.ReadFile(input + ".min") //nolint:gosec // the test's own
			if code != tt.code || string(left) != tt.left {
				t.Errorf("exit %d, left %q (%v):\n%s", code, left, err, out)
			}
			_ = os.Remove(input + ".min")                                                // may not be there
			if now, err := os.ReadFile(input); err != nil || string(now) != b.String() { //nolint:gosec // likewise
				t.Error("the input has changed")
			}
		})
	}
}

func TestMap(t *testing.T) {
	needs(t, "bash", "git", "awk", "xargs")
	dir := history(t)
	out, code := run(t, dir, "bash", "-c", `mkdir -p src/app tests && printf 'def main(): pass\n' > src/app/main.py && printf 'x\n' > tests/test_app.py &&
printf '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n' > pyproject.toml && echo hi > README.md && echo 1 > 'sp ace.py' && git add -A && git commit -qm more`)
	if code != 0 {
		t.Fatal(out)
	}
	out, code = run(t, dir, "bash", script(t, "large-repositories", "map.sh"))
	for _, want := range []string{"8 files (git, 41 commits", "1\tsrc/app", "3 .py", "README.md", "src/app/main.py", "1\ttests", `pyproject.toml:2:testpaths`, "program.sh"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q", want)
		}
	}
	if code != 0 || t.Failed() {
		t.Errorf("exit %d:\n%s", code, out)
	}
	if out, code = run(t, t.TempDir(), "bash", script(t, "large-repositories", "map.sh")); code != 0 || !strings.Contains(out, "no git repository") {
		t.Errorf("an empty folder: exit %d:\n%s", code, out)
	}
}

// TestScriptsAreInOrder: each is read by its interpreter.
func TestScriptsAreInOrder(t *testing.T) {
	needs(t, "bash", "python3")
	for _, s := range skills.Load(skills.Shipped()).Skills {
		for _, f := range s.Files {
			path, err := filepath.Abs(filepath.Join("shipped", s.Name, f.Path))
			if err != nil {
				t.Fatal(err)
			}
			var out string
			code := 0
			switch filepath.Ext(f.Path) {
			case ".sh":
				out, code = run(t, t.TempDir(), "bash", "-n", path)
			case ".py":
				out, code = run(t, t.TempDir(), "python3", "-c", "import ast, sys; ast.parse(open(sys.argv[1]).read(), feature_version=(3, 6))", path)
			}
			if code != 0 {
				t.Errorf("%s: %s", path, out)
			}
			if !strings.Contains(s.Text, f.Path) {
				t.Errorf("%s: the text does not name %s", s.Name, f.Path)
			}
		}
	}
}

// TestCommandsAreInOrder: every block of commands in the texts is one that bash
// can read.
func TestCommandsAreInOrder(t *testing.T) {
	needs(t, "bash")
	blocks := 0
	for _, s := range skills.Load(skills.Shipped()).Skills {
		for block := range strings.SplitSeq(s.Text, "\n\n") {
			if !strings.HasPrefix(block, "    ") || strings.Contains(block, "# Goal") {
				continue
			}
			blocks++
			var lines []string
			for line := range strings.SplitSeq(block, "\n") {
				if !strings.HasPrefix(line, "    ") {
					break // the text goes on without an empty line
				}
				lines = append(lines, strings.TrimPrefix(line, "    "))
			}
			cmd := exec.CommandContext(t.Context(), "bash", "-n")
			cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%s: %v: %s\n%s", s.Name, err, out, strings.Join(lines, "\n"))
			}
		}
	}
	if blocks < 25 {
		t.Errorf("only %d blocks were found", blocks)
	}
}

// deflated is a stream of a PDF.
func deflated(content string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write([]byte(content)) // into memory
	_ = w.Close()                   // likewise
	return b.String()
}

// pdf makes a file with three pages: a plain one with an escaped string, kerning
// and an ordinary font; one whose font has codes of its own, behind a table; one
// that is a form, from a stream of objects, encoded twice. changes are made in its
// text.
func pdf(changes ...string) []byte {
	cmap := `/CIDInit /ProcSet findresource begin begincmap
1 begincodespacerange <0000> <FFFF> endcodespacerange
2 beginbfchar <0001> <0047> <0002> <00660069> endbfchar
2 beginbfrange <0010> <0012> <0061> <0020> <0021> [<00E9> <4E2D>] endbfrange
endcmap`
	packed := []string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R 4 0 R 5 0 R] /Count 3 /Resources << /Font << /F1 7 0 R /F2 8 0 R >> /XObject << /X 14 0 R >> >> >>",
		"<< /Type /Page /Parent 2 0 R /Contents 10 0 R >>",
		"<< /Type /Page /Parent 2 0 R /Contents [11 0 R] >>",
		"<< /Type /Page /Parent 2 0 R /Contents 12 0 R >>",
		"<< /Title (A \\(small\\) report) /Producer <feff00e9> >>",
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding << /BaseEncoding /WinAnsiEncoding /Differences [1 /fi /eacute 3 /bullet] >> >>",
		"<< /Type /Font /Subtype /Type0 /BaseFont /ABCDEF+X /Encoding /Identity-H /DescendantFonts [<< /DW 600 /W [1 [700 560]] >>] /ToUnicode 13 0 R >>",
	}
	var heads, bodies string
	for i, o := range packed {
		heads += fmt.Sprintf("%d %d ", i+1, len(bodies))
		bodies += o + "\n"
	}
	var b bytes.Buffer
	b.WriteString("%PDF-1.5\n%\xe2\xe3\xcf\xd3\n")
	stream := func(number int, dict, content string) {
		fmt.Fprintf(&b, "%d 0 obj\n<< %s /Length %d >>\nstream\n%s\nendstream\nendobj\n", number, dict, len(content), content)
	}
	stream(9, fmt.Sprintf("/Type /ObjStm /N %d /First %d /Filter /FlateDecode", len(packed), len(heads)), deflated(heads+bodies))
	one := "BT /F1 12 Tf 72 700 Td (Hello \\(PDF\\)\\041) Tj 0 -14 Td [(W) 80 (orld) -400 (again)] TJ T* 0 -40 Td (caf\\351, \001sh, \003) Tj ET"
	stream(10, "/Filter /FlateDecode", deflated(one))
	two := "q 1 0 0 1 10 10 cm BT /F2 10 Tf 1 0 0 1 60 600 Tm <0001001000020011> Tj 60 0 Td <00200021> Tj ET Q"
	stream(11, "/Filter /FlateDecode", deflated(two))
	stream(12, "/Filter [/ASCIIHexDecode /FlateDecode]", fmt.Sprintf("%x>", deflated("/X Do")))
	stream(13, "/Filter /FlateDecode", deflated(cmap))
	stream(14, "/Type /XObject /Subtype /Form /BBox [0 0 600 800] /Filter /FlateDecode", deflated("BT /F1 9 Tf 72 500 Td (In a form) Tj ET"))
	b.WriteString("trailer\n<< /Root 1 0 R /Info 6 0 R >>\nstartxref\n0\n%%EOF\n")
	return []byte(strings.NewReplacer(changes...).Replace(b.String()))
}

func TestPDF(t *testing.T) {
	needs(t, "python3")
	program := script(t, "reading-pdfs", "pdftext.py")
	first := "--- page 1 ---\nHello (PDF)!\nWorld again\n\ncafé, fish, •\n"
	second := "--- page 2 ---\nGafib   é中\n"
	third := "--- page 3 ---\nIn a form\n"
	for _, tt := range []struct {
		name string
		file []byte
		args []string
		code int
		want string
	}{
		{"all pages", pdf(), nil, 0, first + second + third},
		{"some pages", pdf(), []string{"--pages", "3,1"}, 0, first + third},
		{"a range", pdf(), []string{"--pages", "2-"}, 0, second + third},
		{"about it", pdf(), []string{"--info"}, 0, "pages: 3\nencrypted: no\nProducer: é\nTitle: A (small) report\n"},
		{"its root is lost", pdf("/Root 1 0 R", ""), nil, 0, first + second + third},
		{"its end is lost", pdf("trailer", "\x00", "startxref", ""), []string{"--pages", "1"}, 0, first},
		{"lengths are wrong", pdf("/Length ", "/Length 9"), nil, 0, first + second + third},
		{"encrypted", pdf("/Root 1 0 R", "/Root 1 0 R /Encrypt 3 0 R"), nil, 3, "pdftext: it is encrypted; try: qpdf"},
		{"no such page", pdf(), []string{"--pages", "9"}, 2, "pdftext: it has 3 pages\n"},
		{"no page at all", pdf(), []string{"--pages", "x"}, 2, "pdftext: --pages: write"},
		{"no PDF", []byte("text"), nil, 2, "is no PDF\n"},
		{"nothing in it", []byte("%PDF-1.4\n1 0 obj << /Type /Page >> endobj"), nil, 1, "--- page 1 ---\n\npdftext: no text in it"},
		{"no file", pdf(), []string{"another.pdf"}, 2, "Each page begins with"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(dir+"/f.pdf", tt.file, 0o600); err != nil {
				t.Fatal(err)
			}
			out, code := run(t, dir, append(append([]string{"python3", program}, tt.args...), "f.pdf")...)
			if code != tt.code || !strings.Contains(out, tt.want) || code == 0 && out != tt.want {
				t.Errorf("exit %d:\n%s\nwant\n%s", code, out, tt.want)
			}
		})
	}
}

// TestDamagedPDF cuts and spoils a file in many places: the script says something,
// and never raises.
func TestDamagedPDF(t *testing.T) {
	needs(t, "python3")
	dir := t.TempDir()
	whole := pdf()
	var paths []string
	for n := 20; n < len(whole); n += 97 {
		spoilt := bytes.Clone(whole)
		spoilt[n], spoilt[n-7] = spoilt[n]^0x55, '<'
		for name, data := range map[string][]byte{"cut": whole[:n], "spoilt": spoilt} {
			path := filepath.Join(dir, fmt.Sprintf("%s-%d.pdf", name, n))
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, path)
		}
	}
	out, code := run(t, dir, append([]string{"python3", "-c", `
import importlib.util, io, sys
spec = importlib.util.spec_from_file_location("pdftext", sys.argv[1]); m = importlib.util.module_from_spec(spec); spec.loader.exec_module(m)
class Out: buffer = io.BytesIO()
for path in sys.argv[2:]:
    sys.argv[1:] = [path]
    real, sys.stdout, sys.stderr = sys.stdout, Out, io.StringIO()
    try: code = m.main()
    finally: sys.stdout = real; sys.stderr = sys.__stderr__
    assert code in (0, 1, 2, 3), path
`, script(t, "reading-pdfs", "pdftext.py")}, paths...)...)
	if code != 0 {
		t.Errorf("exit %d: %s", code, out)
	}
}

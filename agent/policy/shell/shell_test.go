package shell_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/agent/policy/shell"
)

var place = shell.Workspace{Dir: "/work/repo", Home: "/home/user"}

// TestParts checks which parts are found in a command.
func TestParts(t *testing.T) {
	tests := map[string]string{
		"ls -l":                "ls -l",
		"a | b; c && d || e &": "a / b / c / d / e",
		"env LANG=C nice -n 5 timeout 5 make -j4 x": "env nice timeout make -j4 x",
		"bash -c 'a; b' arg":                        "bash a / bash b",
		"sudo -u me -- sh -c 'rm x'":                "sudo sh rm x",
		"find . -name x -exec wc -l {} + -o -print": "find . -name x -exec wc -l {} + -o -print / find wc -l *",
		"git ls-files | xargs -n1 -I% cp % b":       "git ls-files / xargs cp * b",
		"echo $(a `b` \"$(c)\")":                    "b / c / a `b` \"$(c)\" / echo $(a `b` \"$(c)\")",
		"f() { a; }; f":                             "f / a / f",
		"cat <<X\n$(a)\nX":                          "a / cat",
		"cat <<'X'\n$(a)\nX":                        "cat",
		"bash <<'X'\na\nb\nX":                       "bash a / bash b",
		"eval 'a b'; trap 'c' EXIT; alias d=e":      "eval a b / eval a b / trap c EXIT / alias d=e",
		"exec 3>x; time a; coproc b; ! c":           "exec / a / coproc / b / c",
		"uv run --with x pytest":                    "uv run --with x pytest / uv pytest",
		"{a,b}c d":                                  "*c d",
		"# nothing":                                 "",
		"x=1 y=2":                                   "",
		"[[ -f a ]] && (( x > 1 ))":                 "",
		"for i in $(a); do b; done":                 "a / b",
		"case $(a) in b) c;; esac":                  "a / c",
		"command -v a; command b; builtin cd c":     "command -v a / command b / builtin cd c",
		"git -c alias.x='!a b' x":                   "git -c alias.x=!a b x",
		"> a":                                       "",
	}
	for text, want := range tests {
		var got []string
		for _, p := range shell.Analyze(text, place) {
			if c := p.Command(); c != "" {
				got = append(got, c)
			}
		}
		if all := strings.Join(got, " / "); all != want {
			t.Errorf("%s\n got %s\nwant %s", text, all, want)
		}
	}
}

// TestHostileTexts checks that hostile texts are analyzed in time, without stack
// overflow, and are undecided.
func TestHostileTexts(t *testing.T) {
	many := func(s string) string { return strings.Repeat(s, shell.MaxText/len(s)) }
	texts := map[string]string{
		"parentheses": many("("), "braces": many("{ "), "substitutions": many("$("), "quoted": many(`"$(`), "backquotes": many("`a "),
		"escaped": many("`\\"), "ifs": many("if "), "parameters": many("${a:-"), "arrays": many("a["), "tests": "[[ " + many("! "),
		"minus": "echo $((" + many("- ") + "1))", "questions": "echo $((" + many("1?") + "1))", "documents": many("<<a "), "cases": many("case a in a) "),
		"globs": "echo " + many("@("), "functions": many("a()"), "pipes": many("a|") + "a", "ands": many("a&&") + "a", "coprocs": many("coproc "),
		"longer":        strings.Repeat("x", shell.MaxText+1),
		"much longer":   strings.Repeat("a;", 5<<20),
		"NUL":           "ls\x00",
		"commands":      many("a;"),
		"brace bomb":    "echo " + strings.Repeat("{a,b}", 100),
		"sequence":      "echo {1..999999999}",
		"braces again":  many("{1..99} "),
		"shells":        strings.Repeat("bash -c ", 30) + "x",
		"wrappers":      strings.Repeat("env ", 5000) + "x",
		"doubled":       nested(12),
		"nested probes": strings.Repeat("echo $(ls ", 90) + strings.Repeat(")", 90),
		"scripts":       "X='" + strings.Repeat("a;", 20000) + "'\n" + strings.Repeat("bash -c \"$X\"\n", 2000),
		"many words":    strings.Repeat("echo "+strings.Repeat("{1..200}", 1)+";", 10000),
		"long pipe":     strings.Repeat("a | ", 5000) + "a",
		"loops":         many("for a in b;do c;done;"),
		"elifs":         "if a; then b; " + strings.Repeat("elif a; then b; ", 3000) + "fi",
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			parts := shell.Analyze(text, place)
			if took := time.Since(start); took > 2*time.Minute {
				t.Errorf("it took %v", took)
			}
			undecided := false
			for _, p := range parts {
				undecided = undecided || p.UndecidedReason != ""
			}
			if !undecided && !slices.Contains([]string{"nested probes", "wrappers", "shells", "brace bomb", "sequence"}, name) {
				t.Errorf("%d parts, all of them known", len(parts))
			}
		})
	}
}

// TestTable checks that programs.txt has only the attributes that its comment
// describes.
func TestTable(t *testing.T) {
	data, err := os.ReadFile("programs.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	described := regexp.MustCompile(`(?m)^#   ([a-z][a-z=, -]*?)(=RE|=text|=kind)?(  .*)?$`)
	for _, m := range described.FindAllStringSubmatch(string(data), -1) {
		for _, attribute := range regexp.MustCompile(`[a-z-]{2,}`).FindAllString(m[1], -1) {
			known[attribute] = true
		}
	}
	for line := range strings.Lines(strings.ReplaceAll(string(data), "\\\n", "")) {
		at := strings.LastIndex(line, ": ")
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		if at < 0 {
			t.Errorf("a line without attributes: %s", line)
			continue
		}
		for _, attribute := range strings.Fields(line[at+2:]) {
			if key, _, _ := strings.Cut(attribute, "="); !known[key] {
				t.Errorf("unknown attribute %s: %s", key, line)
			}
		}
	}
}

// nested returns a command with n nested shells, correctly quoted.
func nested(n int) string {
	text := "rm x"
	for range n {
		text = "bash -c '" + strings.ReplaceAll(text, "'", `'\''`) + "'"
		if len(text) > shell.MaxText {
			break
		}
	}
	return text
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"ls -l | grep x > a", "bash -c 'rm -rf \"$1\"' _ x", "cat <<E\n$(a)\nE\n", "for i in {1..3}; do cd ..; done", "env -S 'a b' c", "f() { f | f & }; f",
		"find . -exec sh -c 'a {}' \\;", "eval $'\\x72m' x", "git -c alias.x='!a' x", "a=(1 2); ${a[0]}", "xargs -I{} b {}", "echo $((1+`a`))", "case a in b) c;& esac", "parallel a ::: b", "export PATH=x", "()00",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range shell.Analyze(text, place) {
			if p.Start < 0 || p.Start > len(text) {
				t.Fatalf("%q: a part begins at %d", text, p.Start)
			}
			if p.Known && p.Program == "" && p.UndecidedReason == "" && len(p.Paths) == 0 && p.Network == shell.No {
				t.Fatalf("%q: a part that is nothing: %+v", text, p)
			}
		}
	})
}

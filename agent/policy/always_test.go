package policy_test

import (
	"strings"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/policy"
)

// decide returns the action and the rule of a decision.
func decide(p *policy.Policy, command string) string {
	d, _ := p.Evaluate(agent.ApprovalRequest{Command: command, Dir: "/work/repo"})
	return strings.TrimSpace(string(d.Action) + " " + d.Rule)
}

// TestAlwaysAllowed checks commands that begin with words that the user has allowed, and ones
// that try to run more than that.
func TestAlwaysAllowed(t *testing.T) {
	allow := func(p *policy.Policy) *policy.Policy {
		for _, command := range []string{"go test", "pytest", "git status", "git diff", "python -m pytest", "ls", "find", "./run.sh", "make test", "npm run build"} {
			if err := p.AllowCommand(command); err != nil {
				t.Fatal(err)
			}
		}
		return p
	}
	shipped := allow(defaultPolicy(t, policy.Options{Environment: "local", Home: "/home/user"}))
	// Without default rules only the rules of AllowCommand stand between a command and a question.
	bare := allow(newPolicy(t, "default: ask", policy.Options{Environment: "local", Home: "/home/user"}))
	for command, rule := range map[string]string{
		"go test": "go test", "go test ./... -run 'TestX|TestY' -count=1": "go test", `pytest -k "a and not b" tests/test_a.py::test_x`: "pytest",
		"git status --short": "git status", "  git   diff HEAD~1 -- 'a b.py'\n": "git diff", "python -m pytest -q": "python -m pytest", "'go' \"test\"": "go test",
		"ls -la src": "ls", "find . -name '*.py'": "find", "./run.sh --fast": "./run.sh", "make test -j4": "make test", "npm run build -- --prod": "npm run build",
	} {
		for name, p := range map[string]*policy.Policy{"shipped": shipped, "bare": bare} {
			if got, want := decide(p, command), "allow always: "+rule; got != want {
				t.Errorf("%s: %q is %q, want %q", name, command, got, want)
			}
		}
	}
	for _, command := range []string{
		// Lists, pipes, the background, control structures.
		"go test && rm -rf x", "go test; make", "go test || make", "go test & make", "go test &", "go test | sh", "go test |& tee x", "go test\nmake", "go test;",
		"! go test", "time go test", "(go test)", "{ go test; }", "if true; then go test; fi", "while true; do go test; done", "for i in 1; do go test; done",
		"go() { rm x; }; go test", "coproc go test", "go test\r\nmake", "[[ -f x ]] && go test",
		// Redirections and here-documents.
		"go test > out", "go test >> out", "go test 2>&1", "go test &> out", "go test < in", "go test > /etc/passwd", "go test <<X\nX", "go test <<< x", "> out go test", "go test >| x",
		// Substitutions, variables, assignments, patterns.
		"go test $(rm x)", "go test `rm x`", "go test <(rm x)", "go test >(sh)", "go test $X", "go test ${X:=y}", "go test \"$(rm x)\"", "go test $((x[$(rm y)]))", "go test 'a[$(rm x)]'", "go test $'\\x2dexec'",
		"X=1 go test", "PATH=. go test", "GOFLAGS=-exec=x go test", "go test *", "go test {-exec,x}", "go test ~root", "go test a=~root", "go test a''~root:~x", "go test [a-z]", "ls ?", "ls $\"x\"",
		// Wrappers, and programs that run others.
		"sh -c 'go test'", "bash -c 'go test'", "env go test", "env -S 'go test'", "xargs go test", "sudo go test", "doas go test", "nice go test", "nohup go test", "timeout 5 go test",
		"command go test", "exec go test", "eval go test", "eval 'go test'", "builtin go test", "setsid go test", "stdbuf -o0 go test", "watch go test", "ssh host go test", "find . -exec go test \\;",
		"find . -exec rm {} +", "find . -delete", "find . -ok rm {} ;", "find . -fprint /etc/x", "find / -name x", "busybox go test", "xargs -I{} go test {}",
		// Options that run or write something, and paths outside.
		"go test -exec 'rm -rf x'", "go test -exec=rm", "go test -toolexec rm", "go test -vettool=x", "go test -o /usr/bin/x", "go test -coverprofile=/etc/x", "go test ../other", "go test /tmp/x",
		"go test golang.org/x@latest", "pytest --basetemp=/home/user", "pytest --basetemp=src", "pytest --pastebin=all", "pytest /etc", "git diff --output=/etc/x", "git diff --ext-diff", "git diff --no-index /etc/passwd x", "ls /", "ls ..", "ls ~",
		// Other programs and commands of the same names.
		"go", "go testing", "go 'test x'", "'go test'", "go\u00a0test", "go te\u200bst", "git -c alias.status='!rm x' status", "git -C /etc status", "git --exec-path=. status", "git push", "git statusx",
		"./go test", "/tmp/go test", "../go test", "sub/run.sh", "/work/repo/run.sh", "python -m pip install x", "python -m", "python -mpytest", "python -m pytest.evil", "make", "make install", "make test install", "make test SHELL=./x", "npm run", "npm run-script build", "npm run deploy",
		"g\\o test", "go test \\\n-exec x", "go test \x00x", "go test \x1b[2Kx", "alias go=rm", "function go { rm x; }", "", "# go test", "go test " + strings.Repeat("a ", 5000),
	} {
		if d := decide(bare, command); strings.HasPrefix(d, "allow") {
			t.Errorf("bare: %q is %s", command, d)
		}
		if d := decide(shipped, command); strings.HasPrefix(d, "allow always") {
			t.Errorf("shipped: %q is %s", command, d)
		}
	}
}

// The rules of the configuration come first, whatever they decide, and so does a default that denies.
func TestAlwaysComesLast(t *testing.T) {
	for name, test := range map[string]struct{ rules, want string }{
		"a rule that denies":    {"rules: [{programs: go, do: deny}]", "deny rules[0]"},
		"a rule that asks":      {"rules: [{name: mine, programs: go, do: ask}]", "ask mine"},
		"a default rule":        {"default_rules: [{programs: go, do: ask}]", "ask default_rules[0]"},
		"a rule that may match": {"rules: [{programs: go, writes: a, do: ask}]", "ask rules[0]"},
		"a rule that allows":    {"rules: [{programs: go, do: allow}]", "allow rules[0]"},
		"the default denies":    {"default: deny", "deny"},
		"the default asks":      {"default: ask", "allow always: go test"},
		"its own":               {"default: ask\nrules: [{command: go test, do: allow}]", "allow rules[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPolicy(t, test.rules, policy.Options{Environment: "local"})
			one := p.ForInstance("one")
			if err := p.AllowCommand("go test"); err != nil {
				t.Fatal(err)
			}
			for _, p := range []*policy.Policy{p, one} {
				if got := decide(p, "go test ./a"); got != test.want {
					t.Errorf("%s, want %s", got, test.want)
				}
			}
		})
	}
	p := newPolicy(t, "", policy.Options{})
	for _, command := range []string{"", " ", "go test; ls", "go $X", "a | b", "x > y", "X=1 go", "go *", strings.Repeat("a", 100), "go \x1b[0m"} {
		if p.AllowCommand(command) == nil {
			t.Errorf("%q is accepted", command)
		}
	}
	var c policy.Config
	c.Rules = []policy.Rule{{Command: "go | sh", Action: "allow"}, {Command: "go test", Action: "ask"}}
	if mistakes := policy.Check(c, nil); len(mistakes) != 2 || mistakes[0].Key != "rules[0].command" || mistakes[1].Key != "rules[1].command" {
		t.Errorf("%v", mistakes)
	}
}

// ProposeCommand names what a command does, and nothing for commands that a rule asks about.
func TestProposeCommand(t *testing.T) {
	p := defaultPolicy(t, policy.Options{Environment: "local", Home: "/home/user"})
	for command, want := range map[string]string{
		"go test ./... -v": "go test", "pytest -q tests": "pytest", "git status": "git status", "git log --oneline -3": "git log", "npm run build": "npm run build", "npm test": "npm test",
		"python -m pytest -q": "python -m pytest", "python3 'my script.py' a": "python3 'my script.py'", "./run.sh a": "./run.sh", "make": "make", "make test": "make test", "ls -la": "ls", "sed -i s/a/b/ x": "sed",
		"cargo build --release": "cargo build", "node a.js": "node a.js", "bash build.sh": "bash build.sh", "go run main.go": "go run main.go",
		// A rule asks about these.
		"curl x": "", "rm -rf build": "", "git push": "", "cat /etc/passwd": "", "mytool x": "", "sudo ls": "", "pip install x": "", "go test -exec x": "",
		// Only the whole text says what these do.
		"python -c 'print(1)'": "", "python": "", "perl -e x": "", "git -C sub status": "", "git": "", "rm a.py": "", "cd src": "", "go test | tail": "", "go test 2>&1": "", "X=1 go test": "", "timeout 5 go test": "",
		"sh -c 'go test'": "", "": "", "echo $HOME": "", "./" + strings.Repeat("long", 30): "",
	} {
		if got := p.ProposeCommand(agent.ApprovalRequest{Command: command, Dir: "/work/repo"}); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

// A question names the reasons of all rules that ask, once each.
func TestAllReasons(t *testing.T) {
	p := defaultPolicy(t, policy.Options{Environment: "local", Home: "/home/user"})
	for command, want := range map[string]string{
		"rm -rf a":                       "it deletes files without naming each of them (rm -rf a)",
		"rm -rf a && curl x; rm -rf b":   "it deletes files without naming each of them (rm -rf a); it uses the network (curl x)",
		"sudo rm -rf /etc/x":             "it uses another user's rights (sudo rm -rf /etc/x); it deletes files without naming each of them (sudo rm -rf /etc/x); it leaves the folder of the task (sudo rm -rf /etc/x; writes /etc/x)",
		"ls && cat /etc/a && cat /etc/b": "it leaves the folder of the task (cat /etc/a; reads /etc/a)",
	} {
		if d, _ := p.Evaluate(agent.ApprovalRequest{Command: command, Dir: "/work/repo"}); d.Action != agent.Ask || d.Reason != want {
			t.Errorf("%s: %s %q, want %q", command, d.Action, d.Reason, want)
		}
	}
	mixed := newPolicy(t, "rules: [{programs: a, do: ask, reason: first}, {programs: a, do: allow}, {programs: a, do: ask, reason: never}]", policy.Options{})
	if d, _ := mixed.Evaluate(agent.ApprovalRequest{Command: "a", Dir: "/work"}); !strings.HasPrefix(d.Reason, "first") || strings.Contains(d.Reason, "never") {
		t.Error(d.Reason)
	}
}

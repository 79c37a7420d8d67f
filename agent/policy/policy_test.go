package policy_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/policy"
)

// newPolicy compiles a policy from YAML.
func newPolicy(t *testing.T, text string, o policy.Options) *policy.Policy {
	t.Helper()
	var c policy.Config
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	if mistakes := policy.Check(c, []string{"docker", "local"}); len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	p, err := policy.New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRules(t *testing.T) {
	const (
		noRM  = "rules: [{programs: rm, do: deny}]"
		tools = "default: deny\nrules: [{programs: [ls, cat, 'git*'], paths: inside, do: allow}]"
	)
	tests := map[string]struct{ rules, command, want string }{
		"an unknown program that is named":   {"default: ask\nrules: [{programs: mytool, do: allow}]", "mytool a", "allow rules[0]"},
		"and elsewhere":                      {"default: ask\nrules: [{programs: mytool, paths: inside, do: allow}]", "mytool /etc/a", "ask"},
		"and as another user":                {"default: ask\nrules: [{programs: mytool, do: allow}]", "sudo mytool a", "ask"},
		"no rules":                           {"", "rm -rf /", "allow"},
		"the default asks":                   {"default: ask", "ls", "ask"},
		"nothing is run":                     {"default: allow", "# hello", "allow"},
		"a program":                          {noRM, "rm a", "deny rules[0]"},
		"another program":                    {noRM, "rmdir a", "allow"},
		"through a wrapper":                  {noRM, "ls | xargs rm", "deny rules[0]"},
		"an unknown program":                 {noRM, "$X a", "ask rules[0]"},
		"an unknown argument":                {noRM, "ls $X", "allow"},
		"a wrapper itself":                   {"rules: [{programs: xargs, do: deny}]", "ls | xargs cat", "deny rules[0]"},
		"a list of what is allowed":          {tools, "ls; cat a | git hash-object --stdin", "allow rules[0]"},
		"and what is not on it":              {tools, "ls; make", "deny"},
		"and what is elsewhere":              {tools, "cat /etc/passwd", "deny"},
		"and where it writes":                {tools, "cat a > /etc/passwd", "deny"},
		"and what may be elsewhere":          {tools, "cat $X", "deny"},
		"and what may be anything":           {tools, "$X", "deny"},
		"and sudo":                           {tools, "sudo ls", "deny"},
		"the first rule that fits":           {"rules: [{programs: rm, paths: '*.o', do: allow}, {programs: rm, do: deny}]", "rm a.o", "allow rules[0]"},
		"the second":                         {"rules: [{programs: rm, paths: '*.o', do: allow}, {programs: rm, do: deny}]", "rm a.c", "deny rules[1]"},
		"the strictest of parts":             {"rules: [{programs: a, do: ask}, {programs: b, do: deny}]", "a; b; a", "deny rules[1]"},
		"doubt asks, and a rule denies":      {"rules: [{programs: x, writes: outside, do: ask}, {programs: x, do: deny}]", "x /etc/a", "deny rules[1]"},
		"arguments":                          {"rules: [{programs: git, arguments: ['^push\\b', '--force|-f\\b'], do: deny}]", "git push -f", "deny rules[0]"},
		"not all arguments":                  {"rules: [{programs: git, arguments: ['^push\\b', '--force|-f\\b'], do: deny}]", "git push", "allow"},
		"unknown arguments":                  {"rules: [{programs: git, arguments: ['^push\\b'], do: deny}]", "git $X", "ask rules[0]"},
		"a known argument matches":           {"rules: [{programs: git, arguments: ['push'], do: deny}]", "git push $X", "deny rules[0]"},
		"a path by its pattern":              {"rules: [{writes: 'tests/**', do: deny}]", "echo > tests/a/b.py", "deny rules[0]"},
		"read, not written":                  {"rules: [{writes: 'tests/**', do: deny}]", "cat tests/a/b.py", "allow"},
		"an unknown program writes":          {"rules: [{writes: 'tests/**', do: deny}]", "tool tests/a.py", "ask rules[0]"},
		"a name anywhere":                    {"rules: [{paths: '.env', do: deny}]", "cat a/.env", "deny rules[0]"},
		"a folder above":                     {"rules: [{paths: 'secrets', do: deny}]", "cat a/secrets/b", "deny rules[0]"},
		"a path with dots":                   {"rules: [{paths: 'tests/**', do: deny}]", "cat src/../tests/a", "deny rules[0]"},
		"an absolute pattern":                {"rules: [{reads: '/etc/**', do: deny}]", "cat /etc/a/b", "deny rules[0]"},
		"a pattern of the home":              {"rules: [{reads: '~/.ssh', do: deny}]", "cat ~/.ssh/id", "deny rules[0]"},
		"a pattern in the command":           {"rules: [{paths: '*.lock', do: deny}]", "rm *", "ask rules[0]"},
		"pipes":                              {"rules: [{programs: [curl, wget], pipes_into: [sh, bash], do: deny}]", "curl x | tee y | sudo bash", "deny rules[0]"},
		"pipes into another":                 {"rules: [{programs: [curl, wget], pipes_into: [sh, bash], do: deny}]", "curl x | jq .", "allow"},
		"pipes into an unknown program":      {"rules: [{programs: [curl, wget], pipes_into: [sh, bash], do: deny}]", "curl x | $SHELL", "ask rules[0]"},
		"a text anywhere":                    {"rules: [{pattern: 'TODO', do: deny}]", "ls; echo TODO", "deny rules[0]"},
		"an allowed text":                    {"default: ask\nrules: [{pattern: 'git status', do: allow}]", "git status", "allow rules[0]"},
		"an allowed text covers itself":      {"default: ask\nrules: [{pattern: 'git status', do: allow}]", "git status; make", "ask"},
		"steps":                              {"rules: [{steps: '>=3', do: deny}]", "ls", "deny rules[0]"},
		"not yet":                            {"rules: [{steps: '>3', do: deny}]", "ls", "allow"},
		"costs":                              {"rules: [{cost: '>0.4', do: ask}]", "ls", "ask rules[0]"},
		"cheaper":                            {"rules: [{cost: '<=0.4', do: ask}]", "ls", "allow"},
		"not the network":                    {"default: deny\nrules: [{network: false, do: allow}]", "ls", "allow rules[0]"},
		"the network":                        {"default: deny\nrules: [{network: false, do: allow}]", "curl x", "deny"},
		"perhaps the network":                {"default: deny\nrules: [{network: false, do: allow}]", "$X", "deny"},
		"another sandbox":                    {"rules: [{environments: docker, programs: ls, do: deny}]", "ls", "allow"},
		"this sandbox":                       {"rules: [{environments: [docker, local], programs: ls, do: deny}]", "ls", "deny rules[0]"},
		"a rule with a name":                 {"rules: [{name: no-ls, programs: ls, do: deny}]", "ls", "deny no-ls"},
		"whitelisted":                        {"default: ask\nwhitelist_actions: ['git (status|diff)']", "git diff", "allow whitelist_actions[0]"},
		"whitelisted from its beginning":     {"default: ask\nwhitelist_actions: ['git (status|diff)']", "ls; git diff", "ask"},
		"whitelisted up to where it matched": {"default: ask\nwhitelist_actions: ['ls']", "ls; rm a", "ask"},
		"whitelisted to the end of the line": {"default: ask\nwhitelist_actions: ['ls.*']", "ls; rm a", "allow whitelist_actions[0]"},
		"not whitelisted in the next line":   {"default: ask\nwhitelist_actions: ['ls.*']", "ls\nrm a", "ask"},
		"own rules come first":               {"default: ask\nwhitelist_actions: ['ls']\nrules: [{programs: ls, do: deny}]", "ls", "deny rules[0]"},
		"others come later":                  {"whitelist_actions: ['ls']\ndefault_rules: [{programs: ls, do: deny}]", "ls", "allow whitelist_actions[0]"},
		"more folders":                       {"inside: [/tmp]\nrules: [{paths: outside, do: deny}]", "cat /tmp/a", "allow"},
		"a folder of the home":               {"inside: [~/.cache]\nrules: [{paths: outside, do: deny}]", "cat ~/.cache/a; cat ~/a", "deny rules[0]"},
		"a python that is quiet":             {"rules: [{programs: 'python*', do: ask}]", "python3.11 -V", "ask rules[0]"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPolicy(t, test.rules, policy.Options{Environment: "local", Home: "/home/user"})
			d, parts := p.Evaluate(agent.ApprovalRequest{Command: test.command, Dir: "/work/repo", Step: 3, Cost: 0.5})
			if got := strings.TrimSpace(string(d.Action) + " " + d.Rule); got != test.want {
				t.Errorf("%s: %s (%s), want %s\n%+v", test.command, got, d.Reason, test.want, parts)
			}
			if p.ForInstance("one").AllowsEverything() != (test.rules == "" || test.rules == "default: allow" || name == "another sandbox") {
				t.Error("whether it has anything to say is wrong")
			}
		})
	}
}

// TestSymbolicLinks checks paths with symbolic links on this machine.
func TestSymbolicLinks(t *testing.T) {
	root := t.TempDir()
	repo, other := filepath.Join(root, "repo"), filepath.Join(root, "other")
	for _, dir := range []string{repo, other, filepath.Join(repo, "sub")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"out": other, "file": filepath.Join(other, "file"), "nowhere": filepath.Join(other, "not-there"),
		"in": "sub", "round": "round", "sub/up": "..", "sub/far": "../..",
	} {
		if err := os.Symlink(target, filepath.Join(repo, name)); err != nil {
			t.Skip("no symbolic links here: ", err)
		}
	}
	if err := os.Symlink(repo, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	p := newPolicy(t, "rules: [{paths: outside, do: deny}]", policy.Options{Resolve: policy.ResolveSymlinks})
	textOnly := newPolicy(t, "rules: [{paths: outside, do: deny}]", policy.Options{})
	for command, want := range map[string]string{
		"cat a": "allow", "cat out/a": "deny", "cat file": "deny", "echo > nowhere": "deny", "cat in/a/b": "allow",
		"cat round": "ask", "cat sub/up/a": "allow", "cat sub/far/a": "deny", "cat new/../out/x": "deny", "cat out/*.txt": "deny", "cat sub/*": "allow",
		// After a symbolic link, ".." is the parent of the link's target, except for cd.
		"cat out/../a": "deny", "cat in/../a": "allow", "cat sub/up/../a": "deny", "echo > out/../a": "deny", "cat sub/../in/../a": "allow",
		"cat \"$PWD/out/../a\"": "deny", "cat round/../a": "ask", "cat */../a": "ask", "for f in *; do cat $f/../a; done": "ask",
		"cd in && cat ../a": "allow", "cd sub/up && cat ../a": "deny", "cd sub/up && cd .. && cat a": "allow", "cd in/.. && cat a": "allow",
		"cd sub/up && cat a": "allow", "cd new && cat ../a": "allow", "cd out/..": "allow", "cat " + strings.Repeat("a/", 100_000) + "..": "ask", "git -C sub/up/.. status": "deny",
	} {
		for _, dir := range []string{repo, filepath.Join(root, "link")} {
			if d, parts := p.Evaluate(agent.ApprovalRequest{Command: command, Dir: dir}); string(d.Action) != want {
				t.Errorf("%s in %s: %s, want %s\n%+v", command, filepath.Base(dir), d.Action, want, parts)
			}
		}
		if d, _ := textOnly.Evaluate(agent.ApprovalRequest{Command: command, Dir: repo}); d.Action != agent.Allow {
			t.Errorf("%s by its text alone: %s", command, d.Action)
		}
	}
}

// TestDestructive checks the commands that are refused in every mode.
func TestDestructive(t *testing.T) {
	const permissive = "whitelist_actions: ['.*']\ndecider: {when: [allow, ask, deny]}"
	o := policy.Options{Home: "/home/user", RefuseDestructive: true, Decider: &fakeDecider{answer: policy.Answer{Action: agent.Allow}}}
	p := newPolicy(t, permissive, o)
	o.RefuseDestructive = false
	free := newPolicy(t, permissive, o)
	for command, want := range map[string]string{
		"rm -rf /": "it deletes /", "rm -r -f -- /*": "it deletes /", "rm -rf ~": "it deletes /home/user", "rm -rf ~/.[!.]*": "it deletes /home/user",
		"rm -fr \"$HOME\"/": "it deletes /home/user", "rm -rf ..": "it deletes /work", "rm -rf ../../": "it deletes /", "cd / && rm -rf *": "it deletes /",
		"ls; sudo bash -c 'rm -rf /'": "it deletes /", "find / -delete": "it deletes /", "find ~ -exec rm -rf {} +": "it deletes /home/user",
		"env LANG=C timeout 5 rm --recursive /work": "it deletes /work", "if false; then rm -rf /; fi": "it deletes /",
		"dd if=/dev/zero of=/dev/sda": "the disk /dev/sda", "cat x > /dev/nvme0n1": "the disk /dev/nvme0n1", "cp x /dev/mapper/root": "the disk",
		"shred /dev/vda1": "the disk", "rm -rf x | tee /dev/sdb": "the disk", "mkfs.ext4 /dev/sda1": "formats", "sudo wipefs -a /dev/sda": "formats", ":(){ :|:& };:": "fork bomb",
		"bomb() { bomb & bomb; }; bomb": "fork bomb", "git push --force": "history", "git -C sub push -uf origin main": "history", "git push origin +main": "history",
		"git push --force-with-lease": "history", "git fetch; git push --mirror x": "history",
		"rm -rf /home": "it deletes /home", "bash +x -c 'rm -rf /'": "it deletes /", "eval 'rm -rf /'": "it deletes /", "eval rm -rf '~'": "it deletes /home/user",
		"rsync -a --delete empty/ ~/": "it deletes /home/user", "git push --mir x": "history", "git --no-pager -c a=b push -f": "history", "mkdosfs /dev/sda1": "formats",
		"rm --no-preserve-root -r -f /": "it deletes /", "sudo sh -c 'cd / && rm -rf *'": "it deletes /", "'rm' \"-rf\" '/'": "it deletes /",
		"git stash push -f": "", "git log --grep push -f": "", "rm -rf /home/user2": "", "rm -rf ~/x": "", "eval 'rm -rf build'": "",
		"rm -rf build": "", "rm -rf .": "", "rm -rf /tmp/x": "", "rm -rf ~/.cache/x": "", "rm -r *": "", "rm /": "", "ls /": "", "dd if=/dev/sda of=x count=1": "",
		"echo 'rm -rf /'": "", "cat > x <<'E'\nrm -rf /\nE": "", "git push origin main": "", "git push -u origin f": "", "git commit -m 'push --force'": "",
		"f() { g | f; }": "fork bomb", "f() { g; }; f | f": "", "rm -rf $X": "", "grep -rf mkfs /": "", "cat x > /dev/null": "",
	} {
		d, err := p.Decide(t.Context(), agent.ApprovalRequest{Command: command, Dir: "/work/repo"})
		if err != nil || (d.Action == agent.Deny) != (want != "") || !strings.Contains(d.Reason, want) || want != "" && d.Rule != "destructive" {
			t.Errorf("%s: %+v, %v; want %q", command, d, err, want)
		}
		if d, _ := free.Decide(t.Context(), agent.ApprovalRequest{Command: command, Dir: "/work/repo"}); d.Action != agent.Allow {
			t.Errorf("%s: %+v", command, d)
		}
	}
}

// fakeDecider is a decider with a fixed answer.
type fakeDecider struct {
	answer policy.Answer
	err    error
	asked  []policy.Question
}

func (o *fakeDecider) Ask(_ context.Context, q policy.Question) (policy.Answer, error) {
	o.asked = append(o.asked, q)
	return o.answer, o.err
}

func TestDecider(t *testing.T) {
	const base = "rules: [{name: net, network: true, do: ask, reason: no network}, {name: rm, programs: rm, do: deny}]\n"
	yes, no := policy.Answer{Action: agent.Allow}, policy.Answer{Action: agent.Deny, Reason: "never"}
	tests := map[string]struct {
		rules, command string
		answer         policy.Answer
		err            error
		want           string
		asked          int
	}{
		"about a question":       {"", "curl x", yes, nil, "allow decider", 1},
		"it denies":              {"", "curl x", no, nil, "deny decider", 1},
		"it asks":                {"", "curl x", policy.Answer{Action: agent.Ask}, nil, "ask decider", 1},
		"not about the allowed":  {"", "ls", no, nil, "allow default", 0},
		"not about the denied":   {"", "rm x", yes, nil, "deny rule", 0},
		"about all":              {"decider: {when: [allow, ask, deny]}", "ls", no, nil, "deny decider", 1},
		"it may allow, if so":    {"decider: {when: [deny]}", "rm x", yes, nil, "allow decider", 1},
		"no answer":              {"", "curl x", yes, errors.New("gone"), "deny decider", 1},
		"no answer, and a human": {"decider: {on_failure: ask}", "curl x", yes, errors.New("gone"), "ask decider", 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := &fakeDecider{answer: test.answer, err: test.err}
			p := newPolicy(t, base+test.rules, policy.Options{Decider: o}).ForInstance("one")
			d, err := p.Decide(t.Context(), agent.ApprovalRequest{Command: test.command, Dir: "/work", Step: 2, Cost: 0.1})
			if err != nil {
				t.Fatal(err)
			}
			if got := string(d.Action) + " " + d.By; got != test.want || len(o.asked) != test.asked {
				t.Errorf("%s after %d questions, want %s after %d", got, len(o.asked), test.want, test.asked)
			}
			if test.err != nil && (strings.Contains(d.Reason, "gone") || d.Previous[1].Reason != "gone") {
				t.Errorf("what went wrong is not where it belongs: %+v", d)
			}
			if test.asked > 0 && len(d.Previous) == 0 {
				t.Error("the rule is forgotten")
			}
		})
	}
}

func TestQuestion(t *testing.T) {
	o := &fakeDecider{answer: policy.Answer{Action: agent.Allow}}
	p := newPolicy(t, "rules: [{network: true, do: ask, reason: it is asked about}]", policy.Options{Decider: o}).ForInstance("one")
	if _, err := p.Decide(t.Context(), agent.ApprovalRequest{Command: "curl -s x > a; cat /etc/b", Dir: "/work", Step: 2, Cost: 0.5}); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(o.asked[0])
	if err != nil {
		t.Fatal(err)
	}
	want := `{"version":1,"instance":"one","command":"curl -s x \u003e a; cat /etc/b","dir":"/work","step":2,"cost":0.5,` +
		`"decision":{"action":"ask","reason":"it is asked about (curl -s x)","by":"rule","rule":"rules[0]"},` +
		`"programs":["curl","cat"],"writes":["/work/a"],"outside":["/etc/b"],"parts":[` +
		`{"program":"curl","known":true,"arguments":[{"text":"-s","known":true},{"text":"x","known":true}],` +
		`"paths":[{"path":"/work/a","mode":"writes","where":"inside"}],"network":"yes","sudo":"no","recursive_delete":"no","system":"no"},` +
		`{"program":"cat","known":true,"arguments":[{"text":"/etc/b","known":true}],` +
		`"paths":[{"path":"/etc/b","mode":"reads","where":"outside"}],"network":"no","sudo":"no","recursive_delete":"no","system":"no"}]}`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Error(diff)
	}
}

func TestUnattended(t *testing.T) {
	p := newPolicy(t, "rules: [{network: true, do: ask, reason: no}, {programs: rm, do: deny, reason: keep}]", policy.Options{})
	for command, want := range map[string][2]string{
		"ls":     {"allow default", "allow default"},
		"rm x":   {"deny rule", "deny rule"},
		"curl x": {"deny unattended", "allow unattended"},
	} {
		for i, as := range []agent.DecisionAction{agent.Deny, agent.Allow} {
			d, err := policy.Unattended(p, as).Decide(t.Context(), agent.ApprovalRequest{Command: command})
			if err != nil || string(d.Action)+" "+d.By != want[i] {
				t.Errorf("%s: %+v, %v; want %s", command, d, err, want[i])
			}
			if d.By == policy.ByUnattended && (len(d.Previous) != 1 || d.Previous[0].Rule != "rules[0]") {
				t.Errorf("%+v", d)
			}
			if d.By == policy.ByUnattended && as == agent.Deny && !strings.Contains(d.Reason, "no user is present: no (curl x)") {
				t.Error(d.Reason)
			}
		}
	}
}

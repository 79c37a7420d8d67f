package policy_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/policy"
	"github.com/minibench/mini/configs"
)

// defaultPolicy returns the default policy of mini.
func defaultPolicy(t testing.TB, o policy.Options) *policy.Policy {
	t.Helper()
	l, err := configs.ReadBuiltin("mini")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := configs.Merge(l)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.New(cfg.Policy, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestShippedPolicy checks the default policy with a table of commands. Each line
// has a decision, a rule and a command; \n in a command is a line break.
func TestShippedPolicy(t *testing.T) {
	p := defaultPolicy(t, policy.Options{Environment: "local", Home: "/home/user"})
	f, err := os.Open(filepath.Join("testdata", "commands.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, n := bufio.NewScanner(f), 0
	for line := 1; lines.Scan(); line++ {
		if text := lines.Text(); text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		want, rest, ok := strings.Cut(lines.Text(), " ")
		rule, command, ok2 := strings.Cut(strings.TrimLeft(rest, " "), " ")
		command = strings.TrimLeft(command, " ")
		if !ok || !ok2 {
			t.Fatalf("line %d: %q", line, lines.Text())
		}
		n++
		t.Run(strconv.Itoa(line), func(t *testing.T) {
			d, parts := p.Evaluate(agent.ApprovalRequest{Command: strings.ReplaceAll(command, `\n`, "\n"), Dir: "/work/repo"})
			if rule == "-" {
				rule = ""
			}
			if string(d.Action) != want || d.Rule != rule {
				t.Errorf("%s\n is %s by %q (%s); want %s by %q\n%+v", command, d.Action, d.Rule, d.Reason, want, rule, parts)
			}
			if d.Action != agent.Allow && d.Reason == "" {
				t.Errorf("%s\n has no reason", command)
			}
		})
	}
	if err := lines.Err(); err != nil || n < 150 {
		t.Errorf("%d commands: %v", n, err)
	}
}

package chat

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/policy"
)

// confirmPolicy has a rule that asks about rm and curl, and one that denies sudo.
func confirmPolicy(t *testing.T) *policy.Policy {
	t.Helper()
	rules := []policy.Rule{
		{Name: "deletes", Programs: policy.StringList{"rm"}, Action: "ask", Reason: "it deletes"},
		{Name: "network", Programs: policy.StringList{"curl"}, Action: "ask", Reason: "it uses the network"},
		{Name: "root", Programs: policy.StringList{"sudo"}, Action: "deny", Reason: "no root here"},
	}
	p, err := policy.New(policy.Config{Rules: rules}, policy.Options{Environment: "local"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestConfirmAnswers checks the answers at the question about a command.
func TestConfirmAnswers(t *testing.T) {
	for _, tt := range []struct {
		name, command string
		answers       []string
		want          string // action, edited command, reason
		text          string // of the first question
		rules         string // added for the session, and stored ones after a slash
		notice        string
	}{
		{"Enter runs it", "go test ./a", []string{""}, "allow", "Run this command? [Y/n/e/a]", "", ""},
		{"no rule could allow it", "go test | tail", []string{""}, "allow", "Run this command? [Y/n/e]", "", ""},
		{"Enter rejects what a rule asks about", "rm a && curl x", []string{""}, "deny", "Run this command? [y/N/e]", "", ""},
		{"y runs it", "rm a", []string{"y"}, "allow", "Run this command? [y/N/e]", "", ""},
		{"a comment", "rm a", []string{"use git rm"}, "deny use git rm", "Run this command? [y/N/e]", "", ""},
		{"always in the session", "go test ./a", []string{"a", "s"}, "allow", "Run this command? [Y/n/e/a]", "go test", "Allowed in this session: go test ..."},
		{"always in the folder", "go test ./a", []string{"A", "folder"}, "allow", "Run this command? [Y/n/e/a]", "go test/go test", "Allowed in this folder: go test ..."},
		{"not always", "go test ./a", []string{"a", "", "n"}, "deny", "Run this command? [Y/n/e/a]", "", ""},
		{"always needs an answer", "go test ./a", []string{"always", "y", "what", "no", ""}, "allow", "Run this command? [Y/n/e/a]", "", "Please answer s, f or n."},
		{"never always if a rule asks", "rm a", []string{"a", "n"}, "deny", "Run this command? [y/N/e]", "", "A rule asks about this command"},
		{"never always for a pipe", "go test | cat", []string{"a", "n"}, "deny", "Run this command? [Y/n/e]", "", "one program with its arguments"},
		{"edited", "go test ./a", []string{"e", "go test ./b"}, "allow go test ./b", "Run this command? [Y/n/e/a]", "", ""},
		{"edited, though a rule asks", "rm -r a", []string{"e", "rm a/b"}, "allow rm a/b", "Run this command? [y/N/e]", "", ""},
		{"edited as it was", "go vet", []string{"e", "go vet\n"}, "allow", "Run this command? [Y/n/e/a]", "", ""},
		{"edited to nothing", "go vet", []string{"e", " ", "n"}, "deny", "Run this command? [Y/n/e/a]", "", ""},
		{"edited to what is denied", "go vet", []string{"e", "sudo go vet", "n"}, "deny", "Run this command? [Y/n/e/a]", "", "The policy denies this command: no root here"},
		{"a negation is no command of the user", "ls", []string{"edit", "! ls"}, "allow ! ls", "Run this command? [Y/n/e/a]", "", ""},
		{"a key at the edited text", "ls", []string{"e", "/t", "ls a"}, "allow ls a", "Run this command? [Y/n/e/a]", "", ""},
		{"text that cannot be edited", "ls \x1b[2K", []string{"e", "n"}, "deny", "Run this command? [Y/n/e]", "", "cannot be edited"},
		{"Ctrl-C returns from always", "go test ./a", []string{"a", "^C", "n"}, "deny", "Run this command? [Y/n/e/a]", "", ""},
		{"Ctrl-C returns from the edited text", "ls", []string{"e", "^C", ""}, "allow", "Run this command? [Y/n/e/a]", "", ""},
		{"Ctrl-C asks for a message", "ls", []string{"^C", "yes"}, "deny yes", "Run this command? [Y/n/e/a]", "", ""},
		{"Ctrl-C and no message", "rm a", []string{"^C", "", "y"}, "allow", "Run this command? [y/N/e]", "", ""},
		{"denied", "sudo ls", nil, "deny no root here (sudo ls)", "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			frontend, p := &noticeFrontend{scriptedFrontend: scriptedFrontend{answers: tt.answers}}, confirmPolicy(t)
			rules := &recordedRules{Policy: p}
			s := New(Config{Frontend: frontend, Mode: Confirm, Policy: p, Rules: rules, SaveRule: rules.save, Inbox: agent.NewInbox()})
			defer s.Close()
			d, err := s.Decide(t.Context(), agent.ApprovalRequest{Command: tt.command, Dir: "/work"})
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(strings.Fields(fmt.Sprint(d.Action, " ", d.Edited, " ", d.Reason)), " ")
			if got != tt.want || len(frontend.asked) != len(tt.answers) {
				t.Errorf("%q after %d questions, want %q", got, len(frontend.asked), tt.want)
			}
			if len(frontend.asked) > 0 && frontend.asked[0].Text != tt.text {
				t.Errorf("asked %q, want %q", frontend.asked[0].Text, tt.text)
			}
			if got := strings.TrimSuffix(strings.Join(rules.allowed, ",")+"/"+strings.Join(rules.saved, ","), "/"); got != tt.rules {
				t.Errorf("rules %q, want %q", got, tt.rules)
			}
			if !strings.Contains(frontend.notices, tt.notice) {
				t.Errorf("notices %q lack %q", frontend.notices, tt.notice)
			}
		})
	}
}

// After the answer "always" a command like the first runs without a question, and no other does.
func TestAlwaysRuns(t *testing.T) {
	frontend, p := &scriptedFrontend{answers: []string{"a", "s", "n"}}, confirmPolicy(t)
	s := New(Config{Frontend: frontend, Mode: Confirm, Policy: p, Rules: p})
	defer s.Close()
	for _, tt := range []struct{ command, want string }{
		{"go test ./a", "allow user"}, {"go test ./b -v", "allow rule always: go test"}, {"go test ./b && rm x", "deny user"},
	} {
		d, err := s.Decide(t.Context(), agent.ApprovalRequest{Command: tt.command, Dir: "/work"})
		if got := strings.TrimSpace(fmt.Sprint(d.Action, " ", d.By, " ", d.Rule)); err != nil || got != tt.want {
			t.Errorf("%s: %s, %v; want %s", tt.command, got, err, tt.want)
		}
	}
	if q := frontend.asked[1]; q.Text != `Always allow "go test ..." in this session? [s/N]` || !slices.Equal(q.Answers, []string{"no", "session"}) {
		t.Errorf("%+v", q)
	}
}

// A rule that cannot be stored holds for the session.
func TestRuleNotStored(t *testing.T) {
	frontend, p := &noticeFrontend{scriptedFrontend: scriptedFrontend{answers: []string{"a", "f"}}}, confirmPolicy(t)
	s := New(Config{Frontend: frontend, Mode: Confirm, Policy: p, Rules: p, SaveRule: func(string) error { return errors.New("disk full") }})
	defer s.Close()
	for range 2 {
		if d, err := s.Decide(t.Context(), agent.ApprovalRequest{Command: "ls", Dir: "/work"}); err != nil || d.Action != agent.Allow {
			t.Errorf("%+v, %v", d, err)
		}
	}
	if !strings.Contains(frontend.notices, "not stored: disk full") || len(frontend.asked) != 2 {
		t.Errorf("%q after %d questions", frontend.notices, len(frontend.asked))
	}
}

// recordedRules records the rules that are added to a policy and stored.
type recordedRules struct {
	*policy.Policy
	allowed, saved []string
}

func (r *recordedRules) AllowCommand(command string) error {
	r.allowed = append(r.allowed, command)
	return r.Policy.AllowCommand(command)
}

func (r *recordedRules) save(command string) error {
	r.saved = append(r.saved, command)
	return nil
}

// noticeFrontend is a scriptedFrontend that collects the notices.
type noticeFrontend struct {
	scriptedFrontend
	notices string
}

func (f *noticeFrontend) ShowNotice(n Notice) { f.notices += n.Text + "\n" }

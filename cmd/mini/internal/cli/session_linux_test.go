package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/trajectories"
)

// frontends are the frontends of a session. Their behaviour is the same, so the second
// one runs only the cases that depend on its keys.
var frontends = []struct {
	name  string
	args  []string
	env   []string
	ready string // text on the terminal when the user can answer a question
}{
	{"plain", []string{"--plain"}, nil, "\n> "},
	{"rich", nil, []string{"MINI_PLAIN="}, "your turn"},
}

const (
	keyEnter = "\r"
	keyCtrlC = "\x03"
	keyCtrlD = "\x04"

	// submitCommand needs approval in confirm mode, bareSubmit does not.
	submitCommand = "true && echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
	bareSubmit    = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"

	// Texts of questions. When the user can answer, "> " follows.
	askTask    = "What is to be done?"
	askConfirm = "Run this command?"
	askCommand = "Your command"
	askMessage = "Message to the model?"
	askLimit   = "Limit reached"
	askNext    = "submitted its work"
	askUndo    = "Undo all changes"
	takeOver   = "The user says: I take over and run commands myself for now."
	askLines   = "Ctrl-D ends" // an answer of several lines
)

// step waits for the text want, and then types input.
type step struct{ want, input string }

// sessionTest runs sessions in a repository.
type sessionTest struct {
	t     *testing.T
	dir   string // of the repository
	state string
	env   []string
}

func newSessionTest(t *testing.T) *sessionTest {
	t.Helper()
	root := t.TempDir()
	s := &sessionTest{t: t, dir: filepath.Join(root, "repo"), state: filepath.Join(root, "state")}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + root, "XDG_STATE_HOME=" + s.state, "XDG_CONFIG_HOME=" + filepath.Join(root, "config"),
		"TERM=xterm", "MINI_PLAIN=1", "GIT_CONFIG_GLOBAL=/dev/null", "TMPDIR=" + root, noRaceSleep,
		`PAGER=trap : INT; cat; echo in the pager; until read -r line < /dev/tty && [ "$line" ]; do :; done`,
	}
	s.sh("git init -q . && echo one > file && git add . && git -c user.name=a -c user.email=a@b.c commit -q -m one")
	return s
}

func (s *sessionTest) sh(script string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "sh", "-c", script)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %v: %s", script, err, out)
	}
	return string(out)
}

// replies writes a script of replies with one command each, and returns its path.
func (s *sessionTest) replies(commands ...string) string {
	s.t.Helper()
	var b strings.Builder
	if len(commands) == 0 {
		commands = []string{"echo never"}
	}
	for i, c := range commands {
		fmt.Fprintf(&b, "- |\n  thought %d\n\n  ```bash\n  %s\n  ```\n", i+1, strings.ReplaceAll(c, "\n", "\n  "))
	}
	path := filepath.Join(filepath.Dir(s.dir), "replies.yaml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// args returns the arguments of a session with these replies.
func (s *sessionTest) args(replies []string, more ...string) []string {
	return append([]string{"--model-class", "scripted", "-c", "model.replies=" + s.replies(replies...)}, more...)
}

// records returns the transcript of the newest journal.
func (s *sessionTest) records() *trajectories.Attempt {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.state, "mini", "*", "*.journal.jsonl"))
	if err != nil || len(found) == 0 {
		s.t.Fatalf("no journal: %v", err)
	}
	got, err := trajectories.Fold(trajectories.Read(found[len(found)-1]))
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

// conversationText returns the conversation after the prompts: the actions of replies, and
// the first line of other messages.
func conversationText(t *trajectories.Attempt) string {
	var all []string
	for _, e := range t.Entries[min(2, len(t.Entries)):] {
		switch e.Cause {
		case trajectories.CauseReply:
			all = append(all, strings.Join(e.Actions, "; "))
		default:
			line, _, _ := strings.Cut(strings.TrimSpace(e.Content), "\n")
			all = append(all, fmt.Sprintf("%s: %s", e.Cause, line))
		}
	}
	return strings.Join(all, "\n")
}

// decisions returns the action of each decision and who made it.
func (s *sessionTest) decisions() string {
	s.t.Helper()
	found, _ := filepath.Glob(filepath.Join(s.state, "mini", "*", "*.journal.jsonl"))
	var all []string
	for r, err := range trajectories.Read(found[len(found)-1]) {
		if err != nil {
			s.t.Fatal(err)
		}
		if r.Type == trajectories.TypeDecision {
			var d trajectories.CommandDecision
			if err := json.Unmarshal(r.Data, &d); err != nil {
				s.t.Fatal(err)
			}
			all = append(all, fmt.Sprintf("%s %s", d.Action, d.By))
		}
	}
	return strings.Join(all, ", ")
}

// transition is a test of transitions between the states of a session.
type transition struct {
	name         string
	args         []string
	replies      []string
	steps        []step
	code         int
	conversation string
	decisions    string
	unseen       string // must not appear on the terminal
	rich         bool   // also run with the rich frontend
	richOnly     bool   // run with the rich frontend only
}

const (
	ranOK  = "observation: <returncode>0</returncode>"
	killed = "observation: <exception>The user interrupted the command, which was killed with everything it had started.</exception>"
)

// TestSession tests the main transitions between the states of a session. With the tag
// full, TestTransitions tests all of them.
func TestSession(t *testing.T) {
	t.Parallel()
	testTransitions(t, []transition{
		{
			name: "confirmed", rich: true, replies: []string{"echo a", submitCommand},
			steps:        []step{{askConfirm, keyEnter}, {askConfirm, "y\r"}, {askNext, keyEnter}},
			conversation: "echo a\n" + ranOK + "\n" + submitCommand,
			decisions:    "allow user, allow user",
		},
		{
			name: "rejected with a comment, then confirmed", rich: true, replies: []string{"rm x", "echo b", submitCommand},
			steps:        []step{{askConfirm, "leave x alone\r"}, {askConfirm, keyEnter}, {askConfirm, keyEnter}, {askNext, keyEnter}},
			conversation: "rm x\nrejection: The user did not let this command run. The user says: leave x alone\necho b\n" + ranOK + "\n" + submitCommand,
			decisions:    "deny user, allow user, allow user",
		},
		{
			name: "interrupted in mid-command with a message", rich: true, args: []string{"-y"}, replies: []string{"echo so far; sleep 60", submitCommand},
			steps:        []step{{"so far", ""}, {"so far", keyCtrlC}, {askMessage, "try grep\r"}, {askNext, keyEnter}},
			conversation: "echo so far; sleep 60\n" + killed + "\ninterruption: try grep\n" + submitCommand, decisions: "allow mode, allow mode",
		},
		{
			name: "what a child reports is shown", rich: true, args: []string{"-c", "agents.enabled=true"},
			replies:      []string{"mini-tool delegate x; echo after", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo the report", submitCommand},
			steps:        []step{{askConfirm, keyEnter}, {"child 1", ""}, {"of a subagent?", keyEnter}, {"the report", ""}, {"after", ""}, {askConfirm, keyEnter}, {askNext, keyEnter}},
			conversation: "mini-tool delegate x; echo after\n" + ranOK + "\n" + submitCommand, decisions: "allow user, allow user",
		},
		{
			name: "edited, always allowed, and a step undone", rich: true, replies: []string{"echo theirs > new", "ls", "ls -a", "sed -i s/one/two/ file", submitCommand},
			steps: []step{
				{askConfirm, "e\r"},
				{"Edit the command", "\x15echo mine > new\r"},
				{"changed: new +1", ""},
				{askConfirm, "a\r"},
				{`Always allow "ls ..."?`, "f\r"},
				{"Allowed in this folder: ls ...", ""},
				{askConfirm, keyEnter},
				{"changed: file +1 -1", ""},
				{askConfirm, keyEnter},
				{askNext, "/undo 1\r"},
				{"Undo step 4?", "y\r"},
				{"Undone: 1 put back, 0 removed.", "!grep -q one file && grep -q mine new && mini policy rules | grep -q '1  ls' && mini policy check 'ls x' | grep -q 'always: ls'"},
				{askNext, keyEnter},
			},
			conversation: "echo theirs > new\nobservation: The user changed the command before it ran. This ran instead:\nls\n" + ranOK + "\nls -a\n" + ranOK +
				"\nsed -i s/one/two/ file\n" + ranOK + "\n" + submitCommand,
			decisions: "allow user, allow user, allow rule, allow user, allow user",
		},
		{
			name: "Ctrl-C in the pager", rich: true, args: []string{"-y"}, replies: []string{"echo two > file", submitCommand},
			steps: []step{
				{askNext, "\x0f"}, {"in the pager", keyCtrlC + keyCtrlC + "go\r"}, {askNext, keyEnter},
			},
			richOnly: true, conversation: "echo two > file\n" + ranOK + "\n" + submitCommand, decisions: "allow mode, allow mode",
		},
		{
			name: "a session of all modes", rich: true, replies: []string{"echo 1", "echo 2", "echo 3", "echo 4", submitCommand},
			steps: []step{
				{askConfirm, keyEnter}, {askConfirm, "/u\r"}, {askCommand, "echo mine\r"}, {askCommand, "/y\r"}, {"Switched to", ""}, {askNext, "/c\r"}, {"Switched to", ""}, {askNext, keyEnter},
			},
			conversation: "echo 1\n" + ranOK + "\necho 2\nrejection: The user did not let this command run. " + takeOver + "\n" +
				"command: The user ran a command:\necho 3\n" + ranOK + "\necho 4\n" + ranOK + "\n" + submitCommand,
			decisions: "allow user, deny user, allow mode, allow mode, allow mode",
		},
	})
}

func testTransitions(t *testing.T, tests []transition) {
	t.Helper()
	for _, frontend := range frontends {
		for _, tt := range tests {
			if frontend.name == "rich" && !tt.rich || frontend.name != "rich" && tt.richOnly {
				continue
			}
			t.Run(frontend.name+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				s := newSessionTest(t)
				p := newPTYProcess(t)
				p.ready = frontend.ready
				p.start(s.dir, append(s.env, frontend.env...), "mini", s.args(tt.replies, append(append([]string{"-t", "do it"}, frontend.args...), tt.args...)...)...)
				for _, st := range tt.steps {
					script, ok := strings.CutPrefix(st.input, "!")
					if ok {
						p.expect(st.want)
						s.sh(script)
						continue
					}
					p.play(st)
				}
				if code := p.exit(); code != tt.code {
					t.Errorf("exit code %d, not %d:\n%s", code, tt.code, plainText(p.all.String()))
				}
				if diff := cmp.Diff(tt.conversation, conversationText(s.records())); diff != "" {
					t.Errorf("conversation (-want +got):\n%s\n%s", diff, plainText(p.all.String()))
				}
				if diff := cmp.Diff(tt.decisions, s.decisions()); diff != "" {
					t.Errorf("decisions (-want +got):\n%s", diff)
				}
				if tt.unseen != "" && strings.Contains(plainText(p.all.String()), tt.unseen) {
					t.Errorf("%q was asked:\n%s", tt.unseen, plainText(p.all.String()))
				}
			})
		}
	}
}

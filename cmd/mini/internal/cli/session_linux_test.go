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
func (s *sessionTest) records() *trajectories.Transcript {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.state, "mini", "*", "*.journal.jsonl"))
	if err != nil || len(found) == 0 {
		s.t.Fatalf("no journal: %v", err)
	}
	got, err := trajectories.BuildTranscript(trajectories.Read(found[len(found)-1]))
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

// conversationText returns the conversation after the prompts: the actions of replies, and
// the first line of other messages.
func conversationText(t *trajectories.Transcript) string {
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

// TestTransitions tests every transition between the states of a session.
func TestTransitions(t *testing.T) {
	ok := "observation: <returncode>0</returncode>"
	killed := "observation: <exception>The user interrupted the command, which was killed with everything it had started.</exception>"
	tests := []struct {
		name         string
		args         []string
		replies      []string
		steps        []step
		code         int
		conversation string
		decisions    string
		unseen       string // must not appear on the terminal
		rich         bool   // also run with the rich frontend
	}{
		{
			name: "confirmed", rich: true, replies: []string{"echo a", submitCommand},
			steps:        []step{{askConfirm, keyEnter}, {askConfirm, "y\r"}, {askNext, keyEnter}},
			conversation: "echo a\n" + ok + "\n" + submitCommand,
			decisions:    "allow user, allow user",
		},
		{
			name: "a command that only submits is not asked about", replies: []string{bareSubmit}, unseen: askConfirm,
			steps: []step{{askNext, keyEnter}}, conversation: bareSubmit, decisions: "allow submission",
		},
		{
			name: "a command that only submits, in human mode", args: []string{"-c", "agent.mode=human"}, replies: []string{bareSubmit},
			steps: []step{{askCommand, bareSubmit + "\r"}, {askNext, keyEnter}}, conversation: "", unseen: askConfirm,
		},
		{
			name: "a command of the user at a confirmation", rich: true, replies: []string{"echo a", submitCommand},
			steps: []step{
				{askConfirm, " !\r"},
				{"runs a command where", ""},
				{askConfirm, " !echo mi''ne\r"},
				{"mine\n", ""},
				{askConfirm, keyEnter},
				{askConfirm, keyEnter},
				{askNext, keyEnter},
			},
			conversation: "echo a\n" + ok + "\ncommand: The user ran a command:\n" + submitCommand, decisions: "allow user, allow user",
		},
		{
			name: "a command of the user, interrupted", rich: true, replies: []string{"echo a", submitCommand},
			steps: []step{
				{askConfirm, " !echo so f''ar; sleep 60\r"},
				{"so far\n", keyCtrlC},
				{"interrupted", ""},
				{askConfirm, "n\r"},
				{askConfirm, keyEnter},
				{askNext, keyEnter},
			},
			conversation: "echo a\nrejection: The user did not let this command run.\ncommand: The user ran a command:\n" + submitCommand, decisions: "deny user, allow user",
		},
		{
			name: "a command of the user that submits, in an interruption, in human mode and at the end", args: []string{"-y"},
			replies: []string{"echo so far; sleep 60", submitCommand, submitCommand},
			steps: []step{
				{"so far", ""},
				{"so far", " !false\r"},
				{"works only at a question", keyCtrlC},
				{askMessage, " !" + bareSubmit + "\r"},
				{askMessage, "/u\r"},
				{askCommand, " !true\r"},
				{askCommand, "/y\r"},
				{"Switched to", ""},
				{askNext, " !false\r"},
				{"exit code 1", ""},
				{askNext, "more\r"},
				{askNext, keyEnter},
			},
			conversation: "echo so far; sleep 60\n" + killed + "\ncommand: The user ran a command:\ncommand: The user ran a command:\n" + submitCommand +
				"\ncommand: The user ran a command:\nfollow_up: more\n" + submitCommand, decisions: "allow mode, allow mode, allow mode",
		},
		{
			name: "the model shown and switched", rich: true, replies: []string{"echo a", submitCommand},
			steps: []step{
				{askConfirm, "/model\r"},
				{"The model is ", ""},
				{askConfirm, "/model other\r"},
				{"Switched to other", ""},
				{askConfirm, "/MODEL\r"},
				{"The model is other", ""},
				{askConfirm, keyEnter},
				{askConfirm, keyEnter},
				{askNext, keyEnter},
			},
			conversation: "echo a\n" + ok + "\n" + submitCommand, decisions: "allow user, allow user",
		},
		{
			name: "compacted", rich: true, replies: []string{"echo a", "echo b", "echo c", "the summary", submitCommand},
			steps: []step{
				{askConfirm, "/compact\r"},
				{"before the model's next step", ""},
				{askConfirm, keyEnter},
				{"nothing to compact", ""},
				{askConfirm, keyEnter},
				{askConfirm, "/compact the names\r"},
				{"before the model's next step", ""},
				{askConfirm, keyEnter},
				{"conversation was compacted (summarize)", ""},
				{askConfirm, keyEnter},
				{askNext, keyEnter},
			},
			conversation: "echo a\n" + ok + "\necho b\n" + ok + "\necho c\n" + ok + "\n" + submitCommand, decisions: "allow user, allow user, allow user, allow user",
		},
		{
			name: "a new conversation, at a question and while a command runs", rich: true, args: []string{"-c", "agent.mode=confirm"}, replies: []string{"echo so far; sleep 60"},
			steps: []step{
				{askConfirm, "/nosuch thing\r"},
				{"Unknown command /nosuch", ""},
				{askConfirm, "/d file\r"},
				{"/d takes no text after it", ""},
				{askConfirm, "/new the second\r"},
				{"a new conversation begins", ""},
				{askConfirm, "/y\r"},
				{"so far\n", "/clear\r"},
				{"a new conversation begins", ""},
				{askTask, "/new\r"},
				{"a new conversation begins", ""},
				{askTask, "the third\r"},
				{"so far\n", "/exit\r"},
			}, code: 130,
			conversation: "echo so far; sleep 60", decisions: "allow mode",
		},
		{name: "a new conversation at the end", args: []string{"-y"}, replies: []string{submitCommand}, steps: []step{{askNext, "/new\r"}, {"a new conversation begins", ""}, {askTask, "more\r"}, {askNext, "/exit\r"}}, conversation: submitCommand, decisions: "allow mode"},
		{
			name: "rejected with a comment, then confirmed", rich: true, replies: []string{"rm x", "echo b", submitCommand},
			steps:        []step{{askConfirm, "leave x alone\r"}, {askConfirm, keyEnter}, {askConfirm, keyEnter}, {askNext, keyEnter}},
			conversation: "rm x\nrejection: The user did not let this command run. The user says: leave x alone\necho b\n" + ok + "\n" + submitCommand,
			decisions:    "deny user, allow user, allow user",
		},
		{
			name: "confirm to yolo runs the command", replies: []string{"echo a", "echo b", submitCommand},
			steps:        []step{{askConfirm, "/y\r"}, {"Switched to yolo", ""}, {askNext, "y\r"}},
			conversation: "echo a\n" + ok + "\necho b\n" + ok + "\n" + submitCommand, decisions: "allow mode, allow mode, allow mode",
		},
		{
			name: "confirm to human rejects the command", replies: []string{"echo a", submitCommand},
			steps: []step{
				{askConfirm, "/u\r"},
				{askCommand, "echo mine\r"},
				{askCommand, "/c\r"},
				{"Switched to confirm", ""},
				{askConfirm, keyEnter},
				{askNext, keyEnter},
			},
			conversation: "echo a\nrejection: The user did not let this command run. " + takeOver + "\n" +
				"command: The user ran a command:\n" + submitCommand,
			decisions: "deny user, allow user",
		},
		{
			name: "already in confirm", replies: []string{submitCommand},
			steps:        []step{{askConfirm, "/c\r"}, {"Already in confirm mode", ""}, {askConfirm, "/CONFIRM \r"}, {"Already", ""}, {askConfirm, keyEnter}, {askNext, keyEnter}},
			conversation: submitCommand, decisions: "allow user",
		},
		{
			name: "human from the beginning, then yolo", args: []string{"-c", "agent.mode=human"}, replies: []string{"echo b", submitCommand},
			steps:        []step{{askCommand, "echo mine > mine\r"}, {askCommand, keyEnter}, {askCommand, "/y\r"}, {"Switched to yolo", ""}, {askNext, keyEnter}},
			conversation: "command: The user ran a command:\necho b\n" + ok + "\n" + submitCommand, decisions: "allow mode, allow mode",
		},
		{
			name: "human runs a path", args: []string{"-c", "agent.mode=human"}, replies: []string{submitCommand},
			steps:        []step{{askCommand, "/bin/echo a\r"}, {askCommand, "//bin/echo b\r"}, {askCommand, "/y\r"}, {"Switched to", ""}, {askNext, keyEnter}},
			conversation: "command: The user ran a command:\ncommand: The user ran a command:\n" + submitCommand, decisions: "allow mode",
		},
		{
			name: "help in confirm, in human and at the end", replies: []string{submitCommand},
			steps: []step{
				{askConfirm, "/h\r"},
				{"run commands without asking", ""},
				{askConfirm, "/u\r"},
				{askCommand, "/h\r"},
				{"/multiline", ""},
				{askCommand, submitCommand + "\r"},
				{askNext, "/help\r"},
				{"/undo", ""},
				{askNext, keyEnter},
			},
			conversation: submitCommand + "\nrejection: The user did not let this command run. " + takeOver,
			decisions:    "deny user",
		},
		{
			name: "unknown slash command", replies: []string{"echo a", submitCommand},
			steps:        []step{{askConfirm, "/yol\r"}, {"did you mean /yolo?", ""}, {askConfirm, "//yol is no command\r"}, {askConfirm, keyEnter}, {askNext, keyEnter}},
			conversation: "echo a\nrejection: The user did not let this command run. The user says: /yol is no command\n" + submitCommand, decisions: "deny user, allow user",
		},
		{
			name: "yolo from the beginning", args: []string{"-y"}, replies: []string{"echo a", submitCommand},
			steps: []step{{askNext, keyEnter}}, conversation: "echo a\n" + ok + "\n" + submitCommand, decisions: "allow mode, allow mode", unseen: askConfirm,
		},
		{
			name: "whitelisted", args: []string{"-c", `agent.whitelist_actions=["echo [ab]", "true && echo COMPLETE"]`}, replies: []string{"echo a", "true; echo b", submitCommand},
			steps:        []step{{"$ true; echo b", ""}, {askConfirm, keyEnter}, {askNext, keyEnter}},
			conversation: "echo a\n" + ok + "\ntrue; echo b\n" + ok + "\n" + submitCommand, decisions: "allow whitelist, allow user, allow whitelist",
		},
		{
			name: "interrupted in mid-command with a message", rich: true, args: []string{"-y"}, replies: []string{"echo so far; sleep 60", submitCommand},
			steps:        []step{{"so far", ""}, {"so far", keyCtrlC}, {askMessage, "try grep\r"}, {askNext, keyEnter}},
			conversation: "echo so far; sleep 60\n" + killed + "\ninterruption: try grep\n" + submitCommand, decisions: "allow mode, allow mode",
		},
		{
			name: "to human inside an interruption", args: []string{"-y"}, replies: []string{"echo so far; sleep 60", submitCommand},
			steps:        []step{{"so far", ""}, {"so far", keyCtrlC}, {askMessage, "/u\r"}, {askCommand, "echo mine\r"}, {askCommand, "/y\r"}, {"Switched to", ""}, {askNext, keyEnter}},
			conversation: "echo so far; sleep 60\n" + killed + "\ncommand: The user ran a command:\n" + submitCommand, decisions: "allow mode, allow mode",
		},
		{
			name: "interrupted in mid-reply", rich: true, args: []string{"-y", "-c", "model.delay=60"}, replies: []string{submitCommand},
			steps: []step{{"step 1", keyCtrlC}, {askMessage, "/q\r"}}, code: 130,
		},
		{
			name: "left inside an interruption by Ctrl-C", rich: true, args: []string{"-y"}, replies: []string{"echo so far; sleep 60"},
			steps: []step{{"so far", ""}, {"so far", keyCtrlC}, {askMessage, keyCtrlC}}, code: 130,
			conversation: "echo so far; sleep 60\n" + killed, decisions: "allow mode",
		},
		{
			name: "steered by a line while a command runs", rich: true, args: []string{"-y"}, replies: []string{"echo so far; until [ -e go ]; do sleep 0.05; done", submitCommand},
			steps:        []step{{"so far", ""}, {"so far", "use tabs\r"}, {"The model will get this", "!touch go"}, {askNext, keyEnter}},
			conversation: "echo so far; until [ -e go ]; do sleep 0.05; done\n" + ok + "\nsteer: use tabs\n" + submitCommand, decisions: "allow mode, allow mode",
		},
		{
			name: "mode switched while a command runs", args: []string{"-y"}, replies: []string{"echo so far; until [ -e go ]; do sleep 0.05; done", submitCommand},
			steps:        []step{{"so far", ""}, {"so far", "/c\r"}, {"Switched to confirm", "!touch go"}, {askConfirm, keyEnter}, {askNext, keyEnter}},
			conversation: "echo so far; until [ -e go ]; do sleep 0.05; done\n" + ok + "\n" + submitCommand, decisions: "allow mode, allow user",
		},
		{
			name: "Ctrl-C at a confirmation, with a message", replies: []string{"echo a", submitCommand},
			steps:        []step{{askConfirm, keyCtrlC}, {askMessage, "not so\r"}, {askConfirm, keyEnter}, {askNext, keyEnter}},
			conversation: "echo a\nrejection: The user did not let this command run. The user says: not so\n" + submitCommand, decisions: "deny user, allow user",
		},
		{
			name: "Ctrl-C at a confirmation, to human", replies: []string{"echo a", submitCommand},
			steps:        []step{{askConfirm, keyCtrlC}, {askMessage, "/u\r"}, {askCommand, submitCommand + "\r"}, {askNext, keyEnter}},
			conversation: "echo a\nrejection: The user did not let this command run. " + takeOver, decisions: "deny user",
		},
		{
			name: "Ctrl-C at a confirmation, with a message that looks like a yes", replies: []string{"echo a", submitCommand},
			steps:        []step{{askConfirm, keyCtrlC}, {askMessage, "yes\r"}, {askConfirm, keyEnter}, {askNext, keyEnter}},
			conversation: "echo a\nrejection: The user did not let this command run. The user says: yes\n" + submitCommand, decisions: "deny user, allow user",
		},
		{
			name: "Ctrl-C twice at a confirmation", rich: true, replies: []string{"echo a"},
			steps: []step{{askConfirm, keyCtrlC}, {askMessage, keyCtrlC}}, code: 130, conversation: "echo a",
		},
		{
			name: "Ctrl-D at a confirmation", rich: true, replies: []string{"echo a"},
			steps: []step{{askConfirm, keyCtrlD}}, code: 130, conversation: "echo a",
		},
		{
			name: "Ctrl-C once at a command, then twice", args: []string{"-c", "agent.mode=human"},
			steps: []step{{askCommand, keyCtrlC}, {"again to quit", ""}, {askCommand, "true\r"}, {askCommand, keyCtrlC}, {"again to quit", ""}, {askCommand, keyCtrlC}},
			code:  130, conversation: "command: The user ran a command:",
		},
		{
			name: "step limit raised several times", args: []string{"-y", "-c", "agent.step_limit=1"}, replies: []string{"true", "true", "true", submitCommand},
			steps:        []step{{askLimit, "many\r"}, {"is not a number of steps", ""}, {askLimit, "1\r"}, {"already at", ""}, {askLimit, "2\r"}, {askLimit, "+1\r"}, {askLimit, "0 0\r"}, {askNext, keyEnter}},
			conversation: strings.Repeat("true\n"+ok+"\n", 3) + submitCommand, decisions: "allow mode, allow mode, allow mode, allow mode",
		},
		{
			name: "step limit not raised, by a no", args: []string{"-y", "-c", "agent.step_limit=1"}, replies: []string{"true"},
			steps: []step{{askLimit, "y\r"}, {"is not a number of steps", ""}, {askLimit, "n\r"}}, conversation: "true\n" + ok, decisions: "allow mode",
		},
		{
			name: "mode switched at a limit", args: []string{"-y", "-c", "agent.step_limit=1"}, replies: []string{"true", submitCommand},
			steps:        []step{{askLimit, "/c\r"}, {"Switched", ""}, {askLimit, "5 2.5\r"}, {askConfirm, keyEnter}, {askNext, keyEnter}},
			conversation: "true\n" + ok + "\n" + submitCommand, decisions: "allow mode, allow user",
		},
		{
			name: "Ctrl-C twice at a limit", args: []string{"-y", "-c", "agent.step_limit=1"}, replies: []string{"true"},
			steps: []step{{askLimit, keyCtrlC}, {"Ctrl-C again to quit", ""}, {askLimit, keyCtrlC}}, code: 130, conversation: "true\n" + ok, decisions: "allow mode",
		},
		{
			name: "leave at a child's question", args: []string{"-c", "agents.enabled=true"}, replies: []string{"mini-tool delegate x; echo after", "echo its own"},
			steps: []step{{askConfirm, keyEnter}, {"child 1", ""}, {"of a subagent?", keyCtrlC}, {askMessage, keyCtrlC}}, code: 130,
			conversation: "mini-tool delegate x; echo after", decisions: "allow user",
		},
		{
			name: "what a child reports is shown", rich: true, args: []string{"-c", "agents.enabled=true"},
			replies:      []string{"mini-tool delegate x; echo after", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo the report", submitCommand},
			steps:        []step{{askConfirm, keyEnter}, {"child 1", ""}, {"of a subagent?", keyEnter}, {"the report", ""}, {"after", ""}, {askConfirm, keyEnter}, {askNext, keyEnter}},
			conversation: "mini-tool delegate x; echo after\n" + ok + "\n" + submitCommand, decisions: "allow user, allow user",
		},
		{
			name: "no question about the time", args: []string{"-y", "-c", "agent.wall_time_limit_seconds=15"}, replies: []string{"sleep 60"},
			conversation: "sleep 60", decisions: "allow mode", unseen: askLimit,
		},
		{
			name: "new tasks at the end", rich: true, args: []string{"-y"}, replies: []string{submitCommand, submitCommand, submitCommand},
			steps:        []step{{askNext, "and a\r"}, {askNext, "/m\r"}, {askLines, "and b\rand c\r\x04"}, {"thought 3", ""}, {askNext, keyEnter}},
			conversation: submitCommand + "\nfollow_up: and a\n" + submitCommand + "\nfollow_up: and b\n" + submitCommand, decisions: "allow mode, allow mode, allow mode",
		},
		{
			name: "to human at the end", args: []string{"-y"}, replies: []string{submitCommand, submitCommand},
			steps:        []step{{askNext, "/u\r"}, {"Switched to", ""}, {askNext, "n\r"}, {"What comes next?", "I go on\r"}, {askCommand, "true\r"}, {askCommand, "/y\r"}, {"Switched to", ""}, {askNext, keyEnter}},
			conversation: submitCommand + "\nfollow_up: I go on\ncommand: The user ran a command:\n" + submitCommand, decisions: "allow mode, allow mode",
		},
		{
			name: "to confirm at the end, with a new task", args: []string{"-y"}, replies: []string{submitCommand, submitCommand},
			steps:        []step{{askNext, "/c\r"}, {"Switched", ""}, {askNext, "more\r"}, {askConfirm, keyEnter}, {askNext, keyEnter}},
			conversation: submitCommand + "\nfollow_up: more\n" + submitCommand, decisions: "allow mode, allow user",
		},
		{name: "Ctrl-D at the end", args: []string{"-y"}, replies: []string{submitCommand}, steps: []step{{askNext, keyCtrlD}}, conversation: submitCommand, decisions: "allow mode"},
		{name: "Ctrl-C twice at the end", args: []string{"-y"}, replies: []string{submitCommand}, steps: []step{{askNext, keyCtrlC}, {"Ctrl-C again to quit", ""}, {askNext, keyCtrlC}}, conversation: submitCommand, decisions: "allow mode"},
		{name: "no question at the end", args: []string{"-y", "--exit-immediately"}, replies: []string{"echo a > a", submitCommand}, conversation: "echo a > a\n" + ok + "\n" + submitCommand, decisions: "allow mode, allow mode", unseen: askNext},
		{name: "no question at the end, by setting", args: []string{"-y", "-c", "agent.confirm_exit=false"}, replies: []string{submitCommand}, conversation: submitCommand, decisions: "allow mode", unseen: askNext},
		{
			name: "a session of all modes", rich: true, replies: []string{"echo 1", "echo 2", "echo 3", "echo 4", submitCommand},
			steps: []step{
				{askConfirm, keyEnter}, {askConfirm, "/u\r"}, {askCommand, "echo mine\r"}, {askCommand, "/y\r"}, {"Switched to", ""}, {askNext, "/c\r"}, {"Switched to", ""}, {askNext, keyEnter},
			},
			conversation: "echo 1\n" + ok + "\necho 2\nrejection: The user did not let this command run. " + takeOver + "\n" +
				"command: The user ran a command:\necho 3\n" + ok + "\necho 4\n" + ok + "\n" + submitCommand,
			decisions: "allow user, deny user, allow mode, allow mode, allow mode",
		},
	}
	for _, frontend := range frontends {
		for _, tt := range tests {
			if frontend.name == "rich" && !tt.rich {
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

//go:build full && linux

package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/trajectories"
)

func TestSessionAsksForTheTask(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		steps []step
		want  string
		code  int
	}{
		{"a line", []step{{askTask, "greet the world\r"}, {askConfirm, keyEnter}}, "<task>\ngreet the world\n</task>", 0},
		{
			"nothing, help, then several lines",
			[]step{{askTask, keyEnter}, {askTask, "/h\r"}, {askTask, "/m\r"}, {askLines, "greet\r\rthe world\r\x04"}, {askConfirm, keyEnter}},
			"<task>\ngreet\n\nthe world\n</task>", 0,
		},
		{
			"the changes and their undoing, before there are any",
			[]step{
				{askTask, "/d\r"},
				{"Nothing has changed since the session began", ""},
				{askTask, "/undo\r"},
				{"Nothing has changed since the session began", ""},
				{askTask, "greet the world\r"},
				{askConfirm, keyEnter},
			},
			"<task>\ngreet the world\n</task>", 0,
		},
		{
			"a command of the user and another model before there is a task",
			[]step{
				{askTask, "!echo one''two\r"},
				{"onetwo\n", ""},
				{askTask, "!echo run''ning; sleep 60\r"},
				{"running\n", keyCtrlC}, // not sooner: Ctrl-C makes the terminal drop a line that mini has not read
				{askTask, "/model other\r"},
				{askTask, "greet the world\r"},
				{askConfirm, keyEnter},
			},
			"<task>\ngreet the world\n</task>", 0,
		},
		{"left by Ctrl-C twice", []step{{askTask, keyCtrlC}, {"again to quit", ""}, {askTask, keyCtrlC}}, "", 130},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSessionTest(t)
			p := s.session(s.args([]string{submitCommand}, "--exit-immediately")...)
			p.play(tt.steps...)
			p.checkExit(tt.code)
			if tt.want != "" && !strings.Contains(s.firstPrompt(), tt.want) {
				t.Errorf("the model is told\n%s", s.firstPrompt())
			}
			if found, _ := os.ReadDir(filepath.Join(s.state, "mini", "sessions")); tt.want == "" && len(found) > 0 {
				t.Errorf("a session that never began is remembered")
			}
		})
	}
}

// The user can show, keep or undo the changes at any question and at the end.
func TestSessionKeepsOrUndoes(t *testing.T) {
	t.Parallel()
	work := []string{"echo two >> file; echo new > new", submitCommand}
	for _, tt := range []struct {
		name        string
		args        []string
		steps       []step
		code        int
		file, added string
		see         string
	}{
		{"kept", nil, []step{{askNext, keyEnter}}, 0, "one\ntwo\n", "new\n", "submitted its work (2 files changed"},
		{"undone", nil, []step{{askNext, "/undo\r"}, {askUndo, "y\r"}, {"Undone: 1 put back, 1 removed", ""}, {"submitted its work. End", keyEnter}}, 0, "one\n", "", "Undone: 1 put back, 1 removed"},
		{"Ctrl-C twice keeps", nil, []step{{askNext, keyCtrlC}, {"Press Ctrl-C again", ""}, {askNext, keyCtrlC}}, 0, "one\ntwo\n", "new\n", "The changes are kept"},
		{"shown before the end", nil, []step{{askNext, "/d\r"}, {"+two", ""}, {askNext, keyEnter}}, 0, "one\ntwo\n", "new\n", "2 files changed"},
		{"not undone after all", nil, []step{{askNext, "/undo\r"}, {askUndo, keyEnter}, {"Nothing was undone", ""}, {askNext, keyEnter}}, 0, "one\ntwo\n", "new\n", "Nothing was undone"},
		{"kept at a limit", []string{"-c", "agent.step_limit=1"}, []step{{askLimit, keyEnter}}, 0, "one\ntwo\n", "new\n", "--continue and enter /undo"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSessionTest(t)
			args := append([]string{"-t", "do it"}, tt.args...)
			if !strings.Contains(strings.Join(tt.args, " "), "confirm") {
				args = append(args, "-y")
			}
			p := s.session(s.args(work, args...)...)
			p.play(tt.steps...)
			p.checkExit(tt.code)
			if s.file("file") != tt.file || s.file("new") != tt.added {
				t.Errorf("file has %q, new has %q", s.file("file"), s.file("new"))
			}
			if all := plainText(p.all.String()); !strings.Contains(all, tt.see) {
				t.Errorf("no %q:\n%s", tt.see, all)
			}
		})
	}
}

// Every frontend prints the outcome of a session and its reason once.
func TestSessionPrintsOutcomeOnce(t *testing.T) {
	t.Parallel()
	for _, frontend := range frontends {
		for _, tt := range []struct {
			name  string
			args  []string
			steps []step
			code  int
			once  []string
		}{
			{"submitted", []string{"-y", "--exit-immediately"}, nil, 0, []string{"Submitted", "trajectory: "}},
			{"a limit", []string{"-y", "-c", "agent.step_limit=1"}, []step{{askLimit, keyEnter}}, 0, []string{"LimitsExceeded", "trajectory: "}},
			{"left", nil, []step{{askConfirm, keyCtrlD}}, 130, []string{"Interrupted", "--continue to resume", "trajectory: "}},
			{"a failure", []string{"-y", "-c", "agent.step_limit=0"}, nil, 3, []string{"ScriptExhausted", "no more replies", "add replies to the script", "trajectory: "}},
		} {
			t.Run(frontend.name+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				s := newSessionTest(t)
				replies := []string{"true", submitCommand}
				if tt.code == 3 {
					replies = replies[:1]
				}
				p := newPTYProcess(t)
				p.ready = frontend.ready
				p.start(s.dir, append(s.env, frontend.env...), "mini", s.args(replies, append(append([]string{"-t", "do it"}, frontend.args...), tt.args...)...)...)
				p.play(tt.steps...)
				p.checkExit(tt.code)
				all := plainText(p.all.String())
				if rich := strings.Contains(all, "■ "); rich != (frontend.name == "rich") {
					t.Errorf("this is another frontend:\n%s", all)
				}
				for _, text := range tt.once {
					if n := strings.Count(all, text); n != 1 {
						t.Errorf("%q is there %d times:\n%s", text, n, all)
					}
				}
			})
		}
	}
}

// A session in a folder outside of repositories keeps a copy of it, if it is small.
func TestSessionWithoutRepository(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)
	s.dir = t.TempDir()
	s.sh("echo old > old")
	p := s.session(s.args([]string{"echo a > a; echo b >> old", submitCommand}, "-y")...)
	p.play(step{askTask, "/d\r"}, step{"Nothing has changed since the session began", ""}, step{askTask, "do it\r"}, step{"changed: a +1, old +1", ""})
	p.play(step{askNext, "/d\r"}, step{"+b", ""}, step{askNext, "/undo\r"}, step{askUndo, "y\r"}, step{"Undone: 1 put back, 1 removed", ""}, step{"End the session?", keyEnter})
	p.checkExit(0)
	if got := s.sh("ls; cat old; find " + s.state + " -name '*.files'"); got != "old\nold\n" {
		t.Errorf("left: %q", got)
	}

	s.sh("truncate -s 70M x1 x2 x3")
	p = s.session(s.args([]string{submitCommand}, "-y", "-t", "do it")...)
	p.play(step{"Changes cannot be shown or undone: the folder has more than 200 MB and is not in", ""})
	p.play(step{askNext, "/undo\r"}, step{"cannot be shown or undone: the folder has more than 200 MB", ""}, step{askNext, keyEnter})
	p.checkExit(0)
}

// If the terminal is closed, the session ends normally and records the outcome with its
// diff.
func TestSessionEndsWhenTerminalCloses(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]struct {
		command, see string
		args         []string
	}{
		"while a command runs": {"echo two >> file; echo so far; sleep 60", "so far\n", []string{"-y"}},
		"at a question":        {"echo two >> file", askNext, []string{"-y"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSessionTest(t)
			replies := []string{at.command, "sleep 60"}
			if at.see == askNext {
				replies = []string{at.command, submitCommand}
			}
			p := s.session(s.args(replies, append(at.args, "-t", "do it")...)...)
			p.expect(at.see)
			if err := p.Master.Close(); err != nil {
				t.Fatal(err)
			}
			if err := <-p.ended; p.cmd.ProcessState.ExitCode() < 0 {
				t.Errorf("it was killed: %v", err)
			}
			found, _ := filepath.Glob(filepath.Join(s.state, "mini", "*", "*.journal.jsonl"))
			out, ended, err := trajectories.ReadOutcome(found[0])
			if err != nil || !ended {
				t.Fatalf("the journal has no end: %v", err)
			}
			want := trajectories.Interrupted
			if at.see == askNext {
				want = trajectories.Submitted
			}
			if out.Class != want {
				t.Errorf("it ended as %s: %s", out.ExitStatus, out.Error)
			}
			if s.file("file") != "one\ntwo\n" {
				t.Errorf("file has %q", s.file("file"))
			}
			if journal := s.sh("cat " + found[0]); want == trajectories.Interrupted && !strings.Contains(journal, "+two") {
				t.Error("the journal has no diff")
			}
			if traj := strings.Replace(found[0], ".journal.jsonl", ".traj.json", 1); s.sh("tail -c 3 "+traj) == "" {
				t.Error("there is no trajectory")
			}
		})
	}
}

// Ctrl-Z suspends a session and fg resumes it, at a question and while a command runs.
// The size of the terminal may change in between.
func TestSessionSuspendAndResume(t *testing.T) {
	t.Parallel()
	for _, term := range []string{"xterm", "dumb"} {
		t.Run(term, func(t *testing.T) {
			t.Parallel()
			s := newSessionTest(t)
			args := s.args([]string{"echo so far; until [ -e go ]; do sleep 0.05; done", submitCommand}, "-t", "do it", "--exit-immediately")
			p := newPTYProcess(t)
			p.start(s.dir, append(s.env, "TERM="+term, "PS1=ready$ "), "bash", "--norc", "--noprofile", "-i")
			p.play(
				step{"ready$", "mini '" + strings.Join(args, "' '") + "'\r"},
				step{askConfirm, ""}, step{"> ", "\x1a"}, step{"Stopped", ""}, step{"ready$", "fg\r"}, step{"> ", ""},
			)
			p.Resize(30, 10)
			p.play(step{"", keyEnter}, step{"so far\n", "\x1a"}, step{"Stopped", ""}, step{"ready$", "fg\r"}, step{"mini", ""})
			s.sh("touch go")
			p.play(step{askConfirm, keyEnter}, step{"Submitted after 2 steps", ""}, step{"ready$", "exit 7\r"})
			p.checkExit(7)
		})
	}
}

// CRLF line ends in a task are normalized.
func TestTaskWithOtherLineEnds(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)
	p := s.session(s.args([]string{submitCommand}, "-y", "--exit-immediately", "-t", "first\r\nsecond\r\n")...)
	p.checkExit(0)
	if got := s.firstPrompt(); !strings.Contains(got, "<task>\nfirst\nsecond\n") || strings.Contains(got, "\r") {
		t.Errorf("the model is told %q", got)
	}
}

// Messages that the model has not received are sent when the session goes on, in the mode of the
// new call.
func TestContinueSendsPendingMessages(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)
	p := s.session(s.args([]string{"echo so far; sleep 60"}, "-t", "do it", "-y")...)
	p.play(step{"so far\n", "use tabs\r"}, step{"The model will get this", keyCtrlC}, step{askMessage, keyCtrlC})
	p.checkExit(130)
	p = s.session(s.args([]string{"", submitCommand}, "--continue")...)
	p.play(step{"sent next: use tabs", ""}, step{"was left in yolo mode, and goes on in confirm mode", ""}, step{"What comes next?", "be quick\r"}, step{askConfirm, keyEnter}, step{askNext, keyEnter})
	p.checkExit(0)
	if got, want := s.records().Entries, "use tabs\n\nbe quick"; !slices.ContainsFunc(got, func(e trajectories.Entry) bool { return e.Content == want }) {
		t.Errorf("the conversation is\n%s", conversationText(s.records()))
	}
}

// After --continue, the changes are relative to the first snapshot of the session, and
// /undo restores that snapshot.
func TestContinueKnowsTheChanges(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)
	p := s.session(s.args([]string{"echo two >> file; echo new > new", submitCommand}, "-t", "the first task")...)
	p.play(step{askConfirm, keyEnter}, step{askConfirm, keyCtrlD})
	p.expect("--continue and enter /undo")
	p.checkExit(130)

	p = s.session(s.args([]string{"never", "never", submitCommand}, "--continue")...)
	p.play(
		step{"What comes next?", "/d\r"}, step{"+two", ""}, step{"2 files changed", ""},
		step{"What comes next?", "/undo\r"}, step{askUndo, "y\r"}, step{"Undone: 1 put back, 1 removed", ""},
		step{"What comes next?", "/d\r"}, step{"Nothing has changed since the session began", ""},
		step{"What comes next?", keyEnter}, step{askConfirm, keyEnter}, step{askConfirm, keyEnter}, step{askNext, keyEnter},
	)
	p.checkExit(0)
	if s.file("file") != "one\n" || s.file("new") != "" {
		t.Errorf("file has %q, new has %q", s.file("file"), s.file("new"))
	}
	if got := conversationText(s.records()); !strings.Contains(got, "steer: The user has put all files back") {
		t.Errorf("the model is not told:\n%s", got)
	}

	// After the user has kept the changes, the next snapshot is the new state.
	p = s.session(s.args([]string{"never", "never", "never", "echo kept > kept", submitCommand}, "--continue", "-y", "-t", "more")...)
	p.play(step{askNext, keyEnter})
	p.checkExit(0)
	p = s.session(s.args(nil, "--continue")...)
	p.play(step{"What comes next?", "/undo\r"}, step{"Nothing has changed since the session was continued", ""}, step{"What comes next?", keyCtrlD})
	p.checkExit(130)
}

// A reply without a command passes the turn to the user, also after --continue. Without a terminal
// it is an error.
func TestSessionAsksAfterPlainReply(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)
	replies := filepath.Join(filepath.Dir(s.dir), "plain.yaml")
	text := "- Which file?\n- And then?\n- And now?\n- |\n  ```bash\n  " + submitCommand + "\n  ```\n"
	if err := os.WriteFile(replies, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--model-class", "scripted", "-c", "model.replies=" + replies}
	p := s.session(append(args, "-t", "do it")...)
	p.play(step{"Which file?", ""}, step{askMessage, "the first\r"}, step{"And then?", ""}, step{askMessage, keyCtrlD})
	p.checkExit(130)
	p = s.session(append(args, "--continue")...)
	p.play(step{"What comes next?", keyEnter}, step{askMessage, "that is all\r"}, step{"And now?", ""}, step{askMessage, keyEnter}, step{askConfirm, keyEnter}, step{askNext, keyEnter})
	p.checkExit(0)
	got := conversationText(s.records())
	if want := "\nsteer: the first\n\nsteer: that is all\n\nformat_error: "; !strings.HasPrefix(got, want) {
		t.Errorf("the conversation is\n%s", got)
	}
	p = s.session(append(args, "-y", "-t", "do it", "-c", "agent.plain_reply=error")...)
	p.play(step{"RepeatedFormatError", ""})
	p.checkExit(0)
	p = s.session(append(args, "--continue", "-c", "model.replies="+s.replies("", "", "", submitCommand))...)
	p.play(step{"What comes next?", "use bash\r"}, step{askConfirm, keyEnter}, step{askNext, keyEnter})
	p.checkExit(0)
	if got := conversationText(s.records()); !strings.Contains(got, "interruption: use bash\n"+submitCommand) {
		t.Errorf("the conversation is\n%s", got)
	}
}

// A session resumes with the prompts, the limits and the profile it had, below those of the new call.
func TestContinueKeepsSettings(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)
	prompts := filepath.Join(filepath.Dir(s.dir), "own.yaml")
	if err := os.WriteFile(prompts, []byte("agent: {observation_template: 'OWN {{.output}}', mode: yolo}\npolicy: {default: ask}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := s.session(s.args([]string{submitCommand}, "-t", "do it", "-y", "--profile", "coder", "-c", prompts,
		"-c", "policy.whitelist_actions=[\"true\"]", "-c", "agent.step_limit=7", "-c", "model.model_kwargs.seed=4")...)
	p.play(step{askNext, keyEnter})
	p.checkExit(0)
	p = s.session(s.args([]string{"", "echo a", submitCommand}, "--continue", "--plain", "-c", "agent.cost_limit=2")...)
	p.play(step{"policy.default, policy.whitelist_actions", ""}, step{"What comes next?", "more\r"}, step{"confirm | scripted | step 2 of 7 | $0.00 of $2.00", ""},
		step{askConfirm, keyEnter}, step{askConfirm, keyEnter}, step{askNext, keyEnter})
	p.checkExit(0)
	if got := conversationText(s.records()); !strings.Contains(got, "OWN a") {
		t.Errorf("the conversation is\n%s", got)
	}
	p = s.session("--continue", "-y", "-t", "more", "--exit-immediately")
	p.checkExit(3)
}

// A model that -m would refuse leaves the session as it was. A session resumes with the model that
// the user has switched to.
func TestSessionSwitchesModel(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)
	s.env = append(s.env, "OPENAI_API_KEY=no-key")
	p := s.session("-m", "gpt-one")
	p.play(step{askTask, "/model claude-two\r"}, step{"The model stays gpt-one", ""}, step{askTask, "/model\r"}, step{"The model is gpt-one", ""}, step{askTask, "/q\r"})
	p.checkExit(130)

	p = s.session(s.args([]string{"echo a", submitCommand}, "-m", "one", "-t", "do it")...)
	p.play(step{askConfirm, "/model two\r"}, step{"Switched to two", ""}, step{askConfirm, keyEnter}, step{askConfirm, keyCtrlD})
	p.checkExit(130)
	p = s.session("--continue")
	p.play(step{"What comes next?", "/model\r"}, step{"The model is two", ""}, step{"What comes next?", keyCtrlD})
	p.checkExit(130)
}

// The session shows replies and reasoning while they are streamed.
func TestSessionStreams(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		piece := func(field, text string) {
			quoted, err := json.Marshal(text)
			if err != nil {
				t.Error(err)
			}
			_, _ = fmt.Fprintf(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{%q:%s}}]}\n\n", field, quoted)
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			select {
			case <-next:
			case <-r.Context().Done():
			}
		}
		piece("reasoning_content", "let me see ")
		piece("content", "I know \x1b[31mred\x1b]0;title\a")
		piece("content", " what to do.\n\n```bash\n"+submitCommand+"\n```\n")
		_, _ = fmt.Fprint(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
			"data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":1200,\"completion_tokens\":30,\"total_tokens\":1230}}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)
	s := newSessionTest(t)
	p := s.session("-m", "m", "-c", "model.base_url="+server.URL+"/v1", "-c", `model.price={"input": 1, "output": 1}`, "-t", "do it")
	p.expect("let me see")
	next <- struct{}{}
	p.expect("I know")
	next <- struct{}{}
	p.expect("what to do")
	next <- struct{}{}
	p.play(step{"1200 tokens in, 30 out", ""}, step{askConfirm, "/t\r"}, step{"Reasoning is hidden", ""}, step{askConfirm, keyEnter}, step{askNext, keyEnter})
	p.checkExit(0)
	if all := p.all.String(); strings.Contains(all, "\x1b[31m") || strings.Contains(all, "\x1b]") {
		t.Errorf("the model steers the terminal: %q", all)
	}
}

// A session with a user has the instructions of the project in its first prompt, unless the
// user leaves them out.
func TestSessionHasProjectDocs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args []string
		want bool
	}{
		{"shown", nil, true},
		{"off by flag", []string{"--no-project-docs"}, false},
		{"off by setting", []string{"-c", "agent.project_docs=false"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSessionTest(t)
			s.sh("mkdir src && echo 'Use tabs.' > AGENTS.md")
			s.dir = filepath.Join(s.dir, "src")
			p := newPTYProcess(t)
			p.start(s.dir, s.env, "mini", s.args([]string{submitCommand}, append([]string{"-t", "do it", "--plain", "-y"}, tt.args...)...)...)
			if tt.want {
				p.expect("mini: part of the prompt; --no-project-docs leaves it out:\n  ../AGENTS.md (9 B)\n")
			}
			p.play(step{askNext, keyEnter})
			p.checkExit(0)
			if got := strings.HasSuffix(s.firstPrompt(), "\n\n<instructions file=\"../AGENTS.md\">\nUse tabs.\n</instructions>\n"); got != tt.want {
				t.Errorf("the first prompt is\n%s", s.firstPrompt())
			}
		})
	}
}

// mini --resume lists the sessions of the folder and resumes the one that the user chooses.
func TestResumeChosenSession(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)
	for _, task := range []string{"first task", "second task"} {
		p := newPTYProcess(t)
		p.start(s.dir, s.env, "mini", s.args([]string{"echo new >> new; " + submitCommand}, "-t", task, "--plain", "-y")...)
		p.play(step{askNext, keyCtrlD})
		p.checkExit(0)
	}
	p := newPTYProcess(t)
	p.ready = "Number, or a part of the task [1]: "
	p.start(s.dir, s.env, "mini", s.args([]string{submitCommand, submitCommand}, "--resume", "--plain", "-y")...)
	p.expect("  1  today")
	p.expect("scripted, Submitted: second task")
	p.expect("  2  today")
	p.expect("scripted, Submitted: first task")
	p.play(step{"Number, or a part of the task [1]: ", "3\r"}, step{"a number from 1 to 2", ""}, step{"Number, or a part of the task [1]: ", "first\r"})
	p.expect("task: first task")
	p.ready = ""
	p.play(step{"What comes next?", "/d\r"}, step{"Nothing has changed since the session was continued", ""}) // not the files of the second
	p.play(step{"What comes next?", "more\r"}, step{askNext, keyEnter})
	p.checkExit(0)

	p = newPTYProcess(t) // the first task was resumed last
	p.start(s.dir, s.env, "mini", s.args([]string{submitCommand, submitCommand}, "--resume", "2", "--plain", "-y")...)
	p.expect("task: second task")
	p.play(step{"What comes next?", keyCtrlD})
	p.exit()

	for choice, want := range map[string]string{"--resume=3": "no session of this folder has this number", "--resume": "there is no terminal to choose on"} {
		cmd := exec.CommandContext(t.Context(), "mini", s.args(nil, choice, "-y", "-t", "more")...)
		cmd.Dir, cmd.Env = s.dir, s.env
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v:\n%s", choice, err, out)
		}
	}
}

package cli_test

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// session starts mini on a new terminal.
func (s *sessionTest) session(args ...string) *ptyProcess {
	s.t.Helper()
	p := newPTYProcess(s.t)
	p.start(s.dir, s.env, "mini", args...)
	return p
}

// play performs steps. Before it types an answer, it waits until the question is open.
func (p *ptyProcess) play(steps ...step) {
	p.t.Helper()
	questions := []string{askTask, askConfirm, askCommand, askMessage, askLimit, askNext, askUndo, askLines, "What comes next?"}
	for _, st := range steps {
		p.expect(st.want)
		if st.input != "" && slices.Contains(questions, st.want) {
			p.expect(cmp.Or(p.ready, "\n> "))
		}
		p.Type(st.input)
	}
}

// checkExit waits for the exit of the program and checks the exit code.
func (p *ptyProcess) checkExit(code int) {
	p.t.Helper()
	if got := p.exit(); got != code {
		p.t.Errorf("exit code %d, not %d:\n%s", got, code, plainText(p.all.String()))
	}
}

func (s *sessionTest) file(name string) string {
	data, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		return ""
	}
	return string(data)
}

// firstPrompt returns the prompt with the task.
func (s *sessionTest) firstPrompt() string { return s.records().Entries[1].Content }

// --continue resumes the last session of a folder.
func TestContinue(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)
	resume := func(replies []string, args ...string) *ptyProcess {
		return s.session(s.args(replies, append([]string{"--continue"}, args...)...)...)
	}
	p := resume(nil)
	p.expect("there is no session of this folder")
	p.checkExit(2)

	p = s.session(s.args([]string{"echo two >> file", submitCommand}, "-t", "the first task")...)
	p.play(step{askConfirm, keyEnter}, step{askConfirm, keyCtrlD})
	p.checkExit(130)

	// It resumes after the last step, also through a link to the folder, and compares
	// the files with the first snapshot.
	s.sh("ln -s repo ../link")
	s.dir = filepath.Join(filepath.Dir(s.dir), "link")
	p = resume([]string{"never", "never", submitCommand})
	p.play(step{"the first task", ""}, step{"thought 2", ""}, step{"What comes next?", keyEnter}, step{submitCommand, ""}, step{askConfirm, keyEnter})
	busy := resume(nil)
	busy.expect("still open in another mini")
	busy.checkExit(2)
	p.play(step{askNext, "/d\r"}, step{"+two", ""}, step{askNext, keyCtrlD})
	p.checkExit(0)

	// The session has submitted its work, so it requires a new task.
	p = resume([]string{"never", "never", "echo three >> file", submitCommand})
	p.play(step{"What comes next?", keyEnter}, step{"What comes next?", "the second task\r"}, step{askConfirm, keyEnter}, step{askConfirm, keyEnter},
		step{askNext, "/undo all\r"}, step{askUndo, "y\r"}, step{askNext, ""}, step{"", keyEnter})
	p.checkExit(0)
	if s.file("file") != "one\n" {
		t.Errorf("file has %q", s.file("file"))
	}
	ok := "observation: <returncode>0</returncode>"
	want := "echo two >> file\n" + ok + "\n" + submitCommand + "\nfollow_up: the second task\necho three >> file\n" + ok + "\n" + submitCommand
	if got := conversationText(s.records()); got != want {
		t.Errorf("the conversation is\n%s", got)
	}

	// A task of -t is a follow-up too. With --exit-immediately, mini asks nothing.
	p = resume([]string{"never", "never", "never", "never", submitCommand}, "-y", "--exit-immediately", "-t", "the third")
	p.checkExit(0)
	if got := conversationText(s.records()); !strings.HasPrefix(got, want+"\n") || !strings.Contains(got, "follow_up: The user has put all files back") {
		t.Errorf("the conversation is\n%s", got)
	}

	s.sh("rm " + filepath.Join(s.state, "mini", "*", "*.journal.jsonl"))
	p = resume(nil)
	p.expect("there is no session of this folder")
	p.checkExit(2)
}

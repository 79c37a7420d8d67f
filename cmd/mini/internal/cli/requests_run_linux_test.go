package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/trajectories"
)

// requestsTest records the requests of a scenario.
type requestsTest struct {
	*requestScenario
	t      *testing.T
	dir    string
	env    []string
	server *modelServer
	runs   []recordedRun
}

// record runs a scenario and returns its requests.
func (s *requestScenario) record(t *testing.T) []recordedRun {
	t.Helper()
	dir := t.TempDir()
	r := &requestsTest{requestScenario: s, t: t, dir: dir, server: newModelServer(t, s, dir)}
	r.env = []string{
		"PATH=" + r.programs(), "HOME=" + r.dir, "XDG_STATE_HOME=" + r.dir + "/state", "XDG_CONFIG_HOME=" + r.dir + "/config",
		"TMPDIR=" + r.dir, "TERM=xterm", "MINI_PLAIN=1", "GIT_CONFIG_GLOBAL=/dev/null", "SCENARIO=" + r.dir,
		"MINI_TEST_HELPER=" + os.Getenv("MINI_TEST_HELPER"), noRaceSleep,
		"GOGC=400", // the processes are short and many
	}
	r.write("common.yaml", requestConfig)
	r.write("config.yaml", s.config)
	if s.steps == nil {
		r.batch()
	} else {
		r.session()
	}
	return r.runs
}

// programs returns the PATH of a scenario: a folder with the programs that it needs. Without
// git a batch looks for no repository. A scenario with a repository has all programs.
func (r *requestsTest) programs() string {
	r.t.Helper()
	dir := filepath.Join(r.dir, "bin")
	if err := os.Mkdir(dir, 0o700); err != nil {
		r.t.Fatal(err)
	}
	for _, name := range []string{"mini", "mini-test-mcp", "bash", "sh", "cat", "sleep", "base64"} {
		path, err := exec.LookPath(name)
		if own := os.Getenv(requestsBinary); name == "mini" && own != "" {
			path, err = filepath.Abs(own)
		}
		if err == nil {
			err = os.Symlink(path, filepath.Join(dir, name))
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
	if r.repository {
		return dir + ":" + os.Getenv("PATH")
	}
	return dir
}

func (r *requestsTest) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *requestsTest) read(path string) []byte {
	r.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		r.t.Fatal(err)
	}
	return data
}

// mini runs mini with a scenario's settings. Its exit code does not matter: an attempt may
// end in any way. Commands know its process as $MINI.
func (r *requestsTest) mini(args ...string) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), filepath.Join(r.dir, "bin", "sh"), append([]string{"-c", `MINI=$$ exec mini "$@"`, "sh"}, args...)...)
	cmd.Dir, cmd.Env = r.dir, r.env
	out, err := cmd.CombinedOutput()
	if testing.Verbose() { // else it would hide the differences
		r.t.Logf("%v: %v\n%s", args, err, out)
	}
}

// settings are the arguments that all runs of a scenario have.
func (r *requestsTest) settings() []string {
	return []string{
		"--environment-class", "local", "--model-class", r.class, "-m", "m", "-c", "model.base_url=" + r.server.URL,
		"-c", filepath.Join(r.dir, "common.yaml"), "-c", "agent.protocol=" + r.protocol, "-c", filepath.Join(r.dir, "config.yaml"),
	}
}

// maxRecords bounds the records of a journal: numbers of copies have two digits.
const maxRecords = 99

// batch records the attempt of a batch and its copies. The first row is for the attempt;
// the others are for the truncated copies of its journal.
func (r *requestsTest) batch() {
	r.t.Helper()
	var rows strings.Builder
	for i := range maxRecords + 1 {
		fmt.Fprintf(&rows, `{"instance_id":"copy-%02d","problem_statement":"the task of copy %02d"%s}`+"\n", i, i, r.row)
	}
	r.write("rows.jsonl", rows.String())
	bench := func(args ...string) {
		r.t.Helper()
		r.mini(slices.Concat([]string{"bench", "--subset", "rows.jsonl", "-o", "run", "--progress", "plain"}, r.settings(), args)...)
	}
	bench(append([]string{"-i", "copy-00"}, r.args...)...)
	for _, args := range r.more {
		bench(append([]string{"-i", "copy-00"}, args...)...)
	}
	r.add("start", 0)
	r.branch()
	if !r.truncated {
		return
	}
	copies := r.truncations(r.read(filepath.Join(r.dir, "run", "copy-00", "attempts", "1", "journal.jsonl")))
	if len(copies) > maxRecords {
		r.t.Fatalf("the journal has more than %d records", maxRecords)
	}
	for i, c := range copies {
		r.copyAttempt(i+1, c)
	}
	bench("--slice", fmt.Sprintf("1:%d", len(copies)+1), "-w", "2", "--resume-attempts")
	for i, c := range copies {
		r.add(c.String(), i+1)
	}
}

// add adds a run with the requests of a copy.
func (r *requestsTest) add(name string, number int) {
	r.runs = append(r.runs, recordedRun{name, r.server.take(number)})
}

// branch continues the attempt, and an import of it, after some of its steps.
func (r *requestsTest) branch() {
	r.t.Helper()
	if r.branches == nil {
		return
	}
	r.mini("export", "run", "--format", "atif", "-o", "atif")
	r.mini("import", "atif/copy-00/copy-00.json", "-o", "imported")
	for _, from := range []string{"run", "imported"} {
		for _, at := range r.branches {
			r.mini(slices.Concat([]string{"replay", from, "--yes", "--subset", "rows.jsonl", "--from-step", at, "-o", from + "-" + at}, r.settings())...)
			r.add(fmt.Sprintf("%s from step %s", from, at), 0)
		}
	}
}

// truncation is a journal after one of its records: the ordinal-th of its type.
type truncation struct {
	ordinal int
	record  trajectories.Record
	journal []byte
}

func (c truncation) String() string { return fmt.Sprintf("%s %d", c.record.Type, c.ordinal) }

// truncations returns a journal after each of its records.
func (r *requestsTest) truncations(data []byte) []truncation {
	r.t.Helper()
	var all []truncation
	ordinals, end := map[trajectories.Type]int{}, 0
	for line := range bytes.Lines(data) {
		var record trajectories.Record
		if err := json.Unmarshal(line, &record); err != nil {
			r.t.Fatal(err)
		}
		ordinals[record.Type]++
		end += len(line)
		all = append(all, truncation{ordinals[record.Type], record, data[:end]})
	}
	return all
}

// copyAttempt copies the attempt to the row of a copy, as it was after a record: with the
// truncated journal, and what subagents had recorded until then.
func (r *requestsTest) copyAttempt(number int, at truncation) {
	r.t.Helper()
	from := filepath.Join(r.dir, "run", "copy-00", "attempts", "1")
	to := strings.Replace(from, "copy-00", fmt.Sprintf("copy-%02d", number), 1)
	if err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		var journal []byte
		for _, c := range r.truncations(r.read(path)) {
			if !c.record.Time.After(at.record.Time) {
				journal = c.journal
			}
		}
		if path == filepath.Join(from, "journal.jsonl") {
			journal = at.journal
		}
		if journal == nil {
			return nil
		}
		for _, mark := range []string{"copy ", "copy-"} {
			journal = bytes.ReplaceAll(journal, []byte(mark+"00"), fmt.Appendf(nil, "%s%02d", mark, number))
		}
		target := to + strings.TrimPrefix(path, from)
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		return os.WriteFile(target, journal, 0o600)
	}); err != nil {
		r.t.Fatal(err)
	}
}

// session records a session on a terminal, and the sessions that resume its truncated
// journal without a user. Every second one gets a message.
func (r *requestsTest) session() {
	r.t.Helper()
	sh := &sessionTest{t: r.t, dir: r.dir, env: append(r.env, "PATH="+os.Getenv("PATH"))}
	if r.repository {
		sh.sh("git init -q repo && cd repo && echo one > file && git add . && git -c user.name=a -c user.email=a@b.c commit -q -m one")
	} else if err := os.Mkdir(filepath.Join(r.dir, "repo"), 0o700); err != nil {
		r.t.Fatal(err)
	}
	args := append([]string{"-c", "environment.cwd=" + filepath.Join(r.dir, "repo")}, r.settings()...)
	p := newPTYProcess(r.t)
	p.start(r.dir, r.env, filepath.Join(r.dir, "bin", "mini"), slices.Concat(args, []string{"--plain", "-t", "do it"}, r.args)...)
	for _, st := range r.steps {
		if script, ok := strings.CutPrefix(st.input, "!"); ok {
			p.expect(st.want)
			sh.sh(script)
			continue
		}
		p.play(st)
	}
	p.checkExit(0)
	r.add("start", 0)
	found, err := filepath.Glob(filepath.Join(r.dir, "state", "mini", "*", "*.journal.jsonl"))
	if err != nil || len(found) != 1 {
		r.t.Fatal(found, err)
	}
	for _, c := range r.truncations(r.read(found[0])) {
		if err := os.WriteFile(found[0], c.journal, 0o600); err != nil {
			r.t.Fatal(err)
		}
		name, message := c.String(), []string(nil)
		if c.ordinal%2 == 0 || c.record.Type == trajectories.TypeOutcome {
			name, message = name+" and a message", []string{"-t", "Go on."}
		}
		r.mini(slices.Concat(args, []string{"-y", "--continue"}, message)...)
		r.add(name, 0)
	}
}

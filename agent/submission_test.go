package agent_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/agenttest"
	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper/repository"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// records returns the data of the records of a type.
func records[T any](t *testing.T, m *testRecorder, typ trajectories.Type) []T {
	t.Helper()
	var all []T
	for _, r := range m.records {
		if r.Type == typ {
			var v T
			require.NoError(t, json.Unmarshal(r.Data, &v))
			all = append(all, v)
		}
	}
	return all
}

// The submission if a patch is expected.
func TestSubmissionPatch(t *testing.T) {
	edit := bash("echo two >> a.txt")
	const good, bad = "git diff", "echo I am done"
	hand := func(what string) string { return bash(submit + " && " + what) }
	tests := []struct {
		name     string
		replies  []string
		source   trajectories.SubmissionSource
		want     string // part of the submission; "" for an empty one
		not      string // not part of the submission
		returned int    // number of patches sent back to the model
		differs  bool
		warned   string
		class    trajectories.Class
	}{
		{"a valid patch wins", []string{edit, hand(good)}, trajectories.SourceSubmitted, "+two", "", 0, false, "", trajectories.Submitted},
		{"also over other files", []string{edit, bash("git diff > .git/p; echo three >> a.txt"), hand("cat .git/p")}, trajectories.SourceSubmitted, "+two", "+three", 0, true, "", trajectories.Submitted},
		{"nothing but the line", []string{edit, bash(submit)}, trajectories.SourceWorktree, "+two", "", 0, false, "", trajectories.Submitted},
		{"empty lines", []string{edit, hand("echo; echo")}, trajectories.SourceWorktree, "+two", "", 0, false, "", trajectories.Submitted},
		{"nothing at all", []string{bash(submit)}, trajectories.SourceWorktree, "", "x", 0, false, "", trajectories.Submitted},
		{"malformed, then valid", []string{edit, hand(bad), hand(good)}, trajectories.SourceSubmitted, "+two", "", 1, false, "", trajectories.Submitted},
		{"malformed, then nothing", []string{edit, hand(bad), bash(submit)}, trajectories.SourceWorktree, "+two", "", 1, false, "", trajectories.Submitted},
		{"malformed twice", []string{edit, hand(bad), bash("echo three >> a.txt"), hand(bad)}, trajectories.SourceWorktree, "+three", "done", 1, false, "does not apply", trajectories.Submitted},
		{"without its last line end", []string{edit, hand(`printf %s "$(git diff)"`)}, trajectories.SourceSubmitted, "+two\n", "", 0, false, "", trajectories.Submitted},
		{"malformed, then a limit", []string{edit, hand(bad), bash("true"), bash("true"), bash("true")}, trajectories.SourceWorktree, "+two", "", 1, false, "", trajectories.Limit},
		{"the repository is gone", []string{edit, bash("git diff > p; rm -rf .git"), hand("cat p")}, trajectories.SourceSubmitted, "+two", "", 0, false, "without a check", trajectories.Submitted},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := config()
			cfg.Submission, cfg.StepLimit = agent.SubmissionPatch, 5
			rec, model := &testRecorder{}, replies(tt.replies...)
			out := run(t.Context(), t, cfg, model, rec)
			got := []any{out.Class, out.Source, out.DiffersFromWorktree, out.Autosubmitted, out.Steps}
			want := []any{tt.class, tt.source, tt.differs, tt.class == trajectories.Limit, len(tt.replies)}
			assert.NoDiff(t, cmp.Diff(want, got), "outcome (-want +got): %s %q", out.Error, out.Warnings)
			text := string(out.Submission)
			if !strings.Contains(text, tt.want) || tt.want == "" && text != "" || tt.not != "" && strings.Contains(text, tt.not) {
				t.Errorf("the submission is %q", text)
			}
			if all := strings.Join(out.Warnings, "\n"); !strings.Contains(all, tt.warned) || tt.warned == "" && all != "" {
				t.Errorf("warnings %q lack %q", all, tt.warned)
			}
			returned := 0
			for _, c := range records[trajectories.PatchCheck](t, rec, trajectories.TypePatchCheck) {
				if c.ReportedToModel {
					returned++
				}
			}
			messages := 0
			for _, m := range model.prompts[len(model.prompts)-1] {
				if strings.Contains(m.Content, "not handed in yet") && strings.Contains(m.Content, "No valid patches") {
					messages++
				}
			}
			if returned != tt.returned || messages != tt.returned {
				t.Errorf("%d patches sent back and %d messages, want %d", returned, messages, tt.returned)
			}
			for _, d := range records[trajectories.Diff](t, rec, trajectories.TypeDiff) {
				if d.Error == "" && (!d.Exact || d.Tree == "") {
					t.Errorf("the diff is not proved: %+v", d)
				}
			}
		})
	}
}

// disposable is a sandbox that owns its files.
type disposable struct{ env.Environment }

func (d disposable) Info() env.Info {
	info := d.Environment.Info()
	info.Disposable = true
	return info
}

// addFutureBranch adds a branch to the repository that is not in HEAD's
// history.
func addFutureBranch(t *testing.T, sandbox env.Environment) string {
	t.Helper()
	dir := sandbox.Info().Dir
	cmd := exec.CommandContext(t.Context(), "bash", "-ec", `git checkout -q -b fix; echo fixed > a.txt
git -c user.name=a -c user.email=a@b commit -qam fix; git checkout -q -; git remote add origin https://example.org/x`)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

func TestScrubBeforeTheAgentStarts(t *testing.T) {
	look := bash("git log --all --oneline | wc -l; git remote; echo x >> a.txt")
	tests := []struct {
		name   string
		change func(*agent.Config, string)
		wrap   func(env.Environment) env.Environment
		class  trajectories.Class
		status string
		shown  string // what the model sees of the history
		ok     []bool // OK of the records
		warned string
	}{
		{"on", nil, func(e env.Environment) env.Environment { return disposable{e} }, trajectories.Submitted, "Submitted", "[0] 1\n", []bool{true}, ""},
		{"off", func(c *agent.Config, _ string) { c.Scrub = false }, func(e env.Environment) env.Environment { return disposable{e} }, trajectories.Submitted, "Submitted", "[0] 2\norigin\n", nil, ""},
		{"a folder of the user's", nil, func(e env.Environment) env.Environment { return e }, trajectories.Submitted, "Submitted", "[0] 2\norigin\n", nil, "not scrubbed"},
		{
			"what cannot be made honest", func(_ *agent.Config, dir string) {
				assert.NoError(t, os.Symlink("/tmp", filepath.Join(dir, ".git", "another")))
			},
			func(e env.Environment) env.Environment { return disposable{e} }, trajectories.Environment, "RepositoryRefused", "",
			[]bool{false},
			"",
		},
		{
			"no room for it", nil, func(e env.Environment) env.Environment { return fullDisk{disposable{e}} }, trajectories.Environment, "SetupFailed", "",
			[]bool{false},
			"",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sandbox := gitSandbox(t)
			dir := addFutureBranch(t, sandbox)
			cfg := config()
			cfg.Scrub, cfg.Submission = true, agent.SubmissionPatch
			if tt.change != nil {
				tt.change(&cfg, dir)
			}
			a, err := agent.New(cfg)
			require.NoError(t, err)
			model, rec := replies(look, bash(submit)), &testRecorder{}
			out := a.Run(context.WithoutCancel(t.Context()), agent.Session{Model: model, Environment: tt.wrap(sandbox), Recorder: rec, Task: agent.Task{Text: "t"}})
			if out.Class != tt.class || out.ExitStatus != tt.status || (tt.class == trajectories.Environment) != (out.Hint != "") {
				t.Fatalf("%s %s: %s, %s", out.Class, out.ExitStatus, out.Error, out.Hint)
			}
			if tt.name == "no room for it" && (strings.Contains(out.Hint, "agent.scrub") || !strings.Contains(out.Error, "needs 5 KiB")) {
				t.Errorf("%s, with the hint %q", out.Error, out.Hint)
			}
			if tt.shown != "" && model.prompts[1][3].Content != tt.shown {
				t.Errorf("the model was shown %q", model.prompts[1][3].Content)
			}
			if tt.shown != "" && !strings.Contains(string(out.Submission), "+x") {
				t.Errorf("the submission is %q", out.Submission)
			}
			if all := strings.Join(out.Warnings, "\n"); !strings.Contains(all, tt.warned) || tt.warned == "" && all != "" {
				t.Errorf("warnings: %q", all)
			}
			var ok []bool
			for _, r := range records[trajectories.Scrub](t, rec, trajectories.TypeScrub) {
				ok = append(ok, r.OK)
				if r.OK != (r.Head != "" && r.Commits == 1 && r.StrayCommits == 0 && r.Duration > 0 && r.Error == "") {
					t.Errorf("%+v", r)
				}
			}
			assert.Equal(t, tt.ok, ok, "ok")
		})
	}
}

// fullDisk is a sandbox whose disks are full.
type fullDisk struct{ env.Environment }

func (f fullDisk) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if slices.Equal(c.Interpreter, []string{env.RepositoryProgram}) {
		out, err := repository.Encode(repository.Response{Failure: repository.FailedSpace, Error: "it needs 5 KiB"})
		return env.Result{Output: append([]byte(repository.Marker+"\n"), out...)}, err
	}
	return f.Environment.Execute(ctx, c)
}

// If the diff for a submission fails, the submission is not empty: the attempt
// fails.
func TestWorkingDiffFails(t *testing.T) {
	for name, tt := range map[string]struct {
		replies []string
		status  string
		in      string // part of the error
		class   trajectories.Class
	}{
		"submitted, and git would wait":      {[]string{bash("rm -f .gitignore; mkfifo .gitignore"), bash(submit)}, "DiffFailed", "after Submitted", trajectories.Environment},
		"a limit, and git would wait":        {[]string{bash("rm -f .gitignore; mkfifo .gitignore"), bash("true")}, "DiffFailed", ".gitignore is a pipe", trajectories.Environment},
		"the repository is gone":             {[]string{bash("rm -rf .git"), bash(submit)}, "Submitted", "", trajectories.Submitted},
		"all that changed is too large":      {[]string{bash("truncate -s 300G core"), bash(submit)}, "DiffFailed", "core (larger than 5000000 bytes)", trajectories.Environment},
		"all that changed is nothing to git": {[]string{bash("git init -q new; echo x > new/x"), bash("true")}, "DiffFailed", "new/ (a git repository of its own)", trajectories.Environment},
		"nothing changed":                    {[]string{bash("true"), bash(submit)}, "Submitted", "", trajectories.Submitted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config()
			cfg.Submission, cfg.StepLimit = agent.SubmissionPatch, 2
			out := runWithGit(t.Context(), t, cfg, replies(tt.replies...), &testRecorder{})
			if out.Class != tt.class || out.ExitStatus != tt.status || !strings.Contains(out.Error, tt.in) || len(out.Submission) > 0 {
				t.Errorf("%s %s: %q", out.Class, out.ExitStatus, out.Error)
			}
			if (out.Class == trajectories.Environment) != (out.Hint != "") || out.Class == trajectories.Environment && out.Source != "" {
				t.Errorf("hint %q, source %q", out.Hint, out.Source)
			}
		})
	}
}

// hashingRepository reports when its files are hashed.
type hashingRepository struct {
	*agenttest.Repository
	started, hashed chan struct{}
	hangs           bool // until it is cancelled
	cancelled       int
}

func (r *hashingRepository) Open(ctx context.Context, sandbox env.Environment, cfg worktree.Config) (*worktree.Tree, error) {
	tree, err := r.Repository.Open(ctx, sandbox, cfg)
	if err != nil {
		return nil, err
	}
	return worktree.New(tree.Start(), r), nil
}

func (r *hashingRepository) Hash(ctx context.Context) (string, error) {
	if r.hangs && r.cancelled == 0 {
		r.cancelled++
		close(r.started)
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
	tree, err := r.Repository.Hash(ctx)
	r.hashed <- struct{}{}
	return tree, err
}

// waitingModel answers after the files are hashed.
type waitingModel struct {
	*scriptedModel
	waits <-chan struct{}
}

func (p waitingModel) Query(ctx context.Context, m []model.Message) (model.Reply, error) {
	<-p.waits
	return p.scriptedModel.Query(ctx, m)
}

// recordedTrees returns the hashes of the calls and of the final diff.
func recordedTrees(t *testing.T, rec *testRecorder) (calls []string, last string) {
	t.Helper()
	for _, r := range rec.records {
		var d struct {
			Tree string `json:"tree"`
		}
		if r.Type != trajectories.TypeCall && r.Type != trajectories.TypeDiff {
			continue
		}
		require.NoError(t, json.Unmarshal(r.Data, &d))
		if last = d.Tree; r.Type == trajectories.TypeCall {
			calls = append(calls, d.Tree)
		}
	}
	return calls, last
}

// The hash of the files is recorded with the model call, if there is time.
func TestTreeHash(t *testing.T) {
	defer agent.HashEveryCall()()
	tests := map[string]struct {
		hangs  bool
		hashed []bool // by call
	}{
		"there is time":        {false, []bool{true, true, true}},
		"the model is quicker": {true, []bool{false, false}}, // one call is skipped after that
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			repo := &hashingRepository{Repository: agenttest.NewRepository(t), started: make(chan struct{}), hashed: make(chan struct{}, 9), hangs: tt.hangs}
			m := waitingModel{replies("```bash\necho new > added\n```", "```bash\ntrue\n```", "```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```"), repo.hashed}
			if tt.hangs {
				m.waits = repo.started
			}
			a, err := agent.New(agent.Config{
				SystemTemplate: "s", InstanceTemplate: "t", ObservationTemplate: "o", FormatErrorTemplate: "f",
				Submission: agent.SubmissionPatch, StepLimit: 9,
			})
			require.NoError(t, err)
			rec := newRecorder()
			out := a.Run(t.Context(), agent.Session{Model: m, Environment: repo.Sandbox, Repository: repo, Recorder: rec, Task: agent.Task{Text: "task"}, RecordTreeHashes: true})
			require.Equal(t, trajectories.Submitted, out.Class, "%+v", out)
			calls, last := recordedTrees(t, rec)
			for i, hashed := range tt.hashed {
				if (calls[i] != "") != hashed {
					t.Errorf("call %d: tree %q", i+1, calls[i])
				}
			}
			if !tt.hangs && (calls[2] != last || calls[2] != calls[1] || calls[1] == calls[0]) {
				t.Errorf("the trees are %q, and %q at the end", calls, last)
			}
		})
	}
}

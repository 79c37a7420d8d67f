package evaluate_test

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/demo"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/verdicts"
)

// containers starts containers as the official harness does.
type containers struct {
	engine *docker.Engine
	change func(*docker.Config)
	// started is called with each container.
	started func(*docker.Container)
}

func (c containers) Start(ctx context.Context, in datasets.Instance) (env.Environment, error) {
	config := docker.Config{
		Image: in.ImageName(), User: "root", Interpreter: []string{"/bin/bash", "-c"}, Network: "none", MemoryBytes: -1, PIDs: 4096,
		CapDrop: []string{}, CapAdd: []string{"SYS_ADMIN"}, NewPrivileges: true, AllowUnsafe: true, Instance: in.ID,
	}
	if c.change != nil {
		c.change(&config)
	}
	sandbox, err := c.engine.Start(ctx, config)
	if err != nil {
		return nil, err
	}
	if c.started != nil {
		c.started(sandbox)
	}
	return sandbox, nil
}

// demoEngine returns an engine that has the images of the demo.
func demoEngine(t *testing.T) *docker.Engine {
	t.Helper()
	api := dockertest.Client(t)
	for _, in := range rows(t) {
		if _, err := api.ImageInspect(t.Context(), in.ImageName()); err != nil {
			if os.Getenv("MINI_REQUIRE_DOCKER") == "1" {
				t.Fatalf("image %s is missing, scripts/images.sh makes it: %v (MINI_REQUIRE_DOCKER=1)", in.ImageName(), err)
			}
			t.Skipf("image %s is missing, scripts/images.sh makes it: %v", in.ImageName(), err)
		}
	}
	return dockertest.Engine(t)
}

// TestDemo checks the baseline of the demo.
func TestDemo(t *testing.T) {
	b := newEvaluation(t, containers{engine: demoEngine(t)})
	b.config.Workers = 2
	var golds, noops []evaluate.Task
	for _, in := range rows(t)[:2] { // the package demo tests all of them

		golds, noops = append(golds, evaluate.GoldTask(in)), append(noops, evaluate.NoopTask(in))
	}
	s := b.run(t.Context(), golds...)
	if s.Count(verdicts.Resolved) != 2 {
		t.Errorf("gold: %v", s.ByClass)
		b.logReasons(s)
	}
	b.checkOfficial(s, golds...)
	s = b.run(t.Context(), noops...)
	if s.Count(verdicts.Unresolved) != 2 || len(s.Quarantined) > 0 || s.Trusted != 2 {
		t.Errorf("noop: %v, quarantined %v", s.ByClass, s.Quarantined)
		b.logReasons(s)
	}
	for _, r := range s.Records {
		if r.Gold != verdicts.Resolved || r.Basis.ImageID == "" || r.Basis.Key == "" || r.Basis.Machine.Kernel == "" || r.Basis.Machine.CPUs < 1 {
			t.Errorf("%s: gold %q, basis %+v", r.Instance, r.Gold, r.Basis)
		}
	}
	if s := b.run(t.Context(), golds...); s.Reused != 2 {
		t.Errorf("gold again: %d of 2 reused", s.Reused)
	}
}

func (b *evaluation) logReasons(s evaluate.Summary) {
	b.t.Helper()
	for _, r := range s.Records {
		b.t.Logf("%s: %s: %s", r.Instance, r.Class, r.Reason)
		if len(r.Runs) > 0 {
			b.t.Logf("%s", b.file(filepath.Join(r.Runs[len(r.Runs)-1].Dir, "run_instance.log")))
		}
	}
}

// withTest returns a row with another test command.
func withTest(in datasets.Instance, command string) datasets.Instance {
	lines := strings.Split(in.EvalScript, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "python3 -m pytest") {
			lines[i] = command
		}
	}
	in.EvalScript = strings.Join(lines, "\n")
	return in
}

// fakePasses prints the output of passing tests.
func fakePasses(in datasets.Instance) string {
	var b strings.Builder
	for _, test := range append(append([]string{}, in.FailToPass...), in.PassToPass...) {
		b.WriteString("PASSED " + test + "\n")
	}
	return "cat <<'END'\n" + b.String() + "END\n"
}

// patchCase is a patch with the verdict and the files that it gets.
type patchCase struct {
	name    string
	row     datasets.Instance
	patch   string
	timeout time.Duration // 0 means one that is not reached
	class   verdicts.Class
	files   string
	with    string
	change  func(*docker.Config)
	check   func(t *testing.T, b *evaluation, r verdicts.Record)
}

func (c patchCase) run(t *testing.T, engine *docker.Engine) {
	t.Helper()
	b := newEvaluation(t, containers{engine: engine, change: c.change})
	b.config.Timeout = cmp.Or(c.timeout, 10*time.Minute)
	b.config.Retries.MaxTries = 2
	task := evaluate.NewTask(c.row, "m", []byte(c.patch))
	if c.patch == "" {
		task = evaluate.NewTask(c.row, "m", nil)
	}
	s := b.run(t.Context(), task)
	if s.Count(c.class) != 1 {
		t.Errorf("%v, want %s", s.ByClass, c.class)
		b.logReasons(s)
		return
	}
	if got := b.official("m", c.row.ID); got != c.files {
		t.Errorf("files %q, want %q", got, c.files)
	}
	r := s.Records[0]
	if len(r.Runs) > 0 && r.Runs[0].AppliedWith != c.with {
		t.Errorf("applied with %q, want %q", r.Runs[0].AppliedWith, c.with)
	}
	b.checkOfficial(s, task)
	if c.check != nil {
		c.check(t, b, r)
	}
}

// TestPatches evaluates patches with the real git, patch and bash.
func TestPatches(t *testing.T) {
	engine := demoEngine(t)
	in := row(t)
	for _, c := range []patchCase{
		{name: "gold", row: in, patch: in.Patch, class: verdicts.Resolved, files: graded, with: "git apply --verbose"},
		{name: "null", row: in, class: verdicts.Empty, files: none},
		{name: "does not apply", row: in, patch: strings.ReplaceAll(in.Patch, "units", "unites"), class: verdicts.ApplyFailed, files: patched},
		{name: "no patch at all", row: in, patch: "I have fixed it.\n", class: verdicts.ApplyFailed, files: patched},
		{name: "3way", row: in, patch: needs3way(t, in), class: verdicts.Resolved, files: graded, with: "git apply --verbose --3way"},
		{name: "fuzz", row: in, patch: needsFuzz(t, in), class: verdicts.Resolved, files: graded, with: "patch --batch --forward --fuzz=5 -p1 -i"},
		{
			name: "CRLF", row: in, patch: strings.ReplaceAll(in.Patch, "\n", "\r\n"),
			class: verdicts.Resolved, files: graded, with: "patch --batch --forward --fuzz=5 -p1 -i",
		},
		{
			// The tests fail but print passes.
			name: "prints results", row: withTest(in, fakePasses(in)+"(exit 1)"), patch: in.Patch,
			class: verdicts.Unresolved, files: graded, with: "git apply --verbose",
		},
		{
			name: "prints results and markers", row: withTest(in, fakePasses(in)+`printf '>>>>> %s\\n' 'End Test Output' 'Test Exit Code: 0'; (exit 1)`), patch: in.Patch,
			class: verdicts.Resolved, files: graded, with: "git apply --verbose", // as in the official harness
			check: func(t *testing.T, _ *evaluation, r verdicts.Record) {
				var flags []string
				for _, f := range r.Flags {
					flags = append(flags, string(f.Flag))
				}
				if !strings.Contains(strings.Join(flags, " "), "marker_printed") {
					t.Errorf("flags %v", flags)
				}
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, engine) })
	}
}

// needs3way is the fix and a change of a file as it was two commits ago. The context
// lines have changed since, so that only git apply --3way can apply the patch.
func needs3way(t *testing.T, in datasets.Instance) string {
	t.Helper()
	dir := t.TempDir()
	if err := demo.Unpack(t.Context(), in.ID, dir); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "checkout", "HEAD~2", "--", "CHANGELOG.md")
	path := filepath.Join(dir, "CHANGELOG.md")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(data, []byte("First release"), []byte("The first release"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	_, code, ok := strings.Cut(in.Patch, "\ndiff --git a/ledger/")
	if !ok {
		t.Fatalf("the fix is another one:\n%s", in.Patch)
	}
	return git(t, dir, "diff", "-U8", "HEAD~2", "--", "CHANGELOG.md") + "diff --git a/ledger/" + code
}

// needsFuzz is the fix with wrong context lines, which git rejects.
func needsFuzz(t *testing.T, in datasets.Instance) string {
	t.Helper()
	return strings.Replace(in.Patch, "\n     text = text.strip()\n", "\n     text = text.strip() \n", 1)
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).Output()
	if err != nil {
		t.Fatalf("git %v: %v", args, err)
	}
	return string(out)
}

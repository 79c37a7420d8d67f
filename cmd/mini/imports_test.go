package main_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/minibench/mini/"

// rule says what a package may depend on, directly or not: of mini, and of the
// heavy clients.
type rule struct {
	pkg   string
	may   []string // of mini, without the module's path
	heavy bool     // may link the clients of Docker or of a provider
	std   bool     // standard library (and mini) only
}

// rules keep arrows pointing inward: cmd -> runner -> agent -> env, model,
// trajectories.
var rules = []rule{
	{pkg: "internal/text", std: true},
	{pkg: "internal/lazyregexp", std: true},
	{pkg: "internal/atomicfile"},
	{pkg: "env", std: true},
	{pkg: "model", std: true},
	{pkg: "env/process", may: []string{"env"}, std: true},
	{pkg: "env/sink", may: []string{"env"}, std: true},
	{pkg: "env/helper", may: []string{"env", "env/sink"}, std: true},
	{pkg: "env/files", std: true},
	{pkg: "env/scratch", std: true},
	{pkg: "cmd/mini-helper", may: []string{"env", "env/files", "env/process", "env/sink", "env/helper", "env/helper/minitool", "env/helper/minitool/files", "env/helper/server"}, std: true},
	{pkg: "env/helper/minitool", may: []string{"env", "env/sink", "env/helper", "env/helper/minitool/files"}, std: true},
	{pkg: "env/helper/minitool/files", std: true},
	{pkg: "env/helper/child", may: []string{"env", "env/files", "env/process", "env/sink", "env/helper", "env/scratch"}},
	{pkg: "env/local", may: []string{"env", "env/files", "env/process", "env/sink", "env/helper", "env/helper/child", "env/scratch"}},
	{pkg: "env/bubblewrap", may: []string{"env", "env/files", "env/process", "env/sink", "env/helper", "env/helper/child", "env/scratch"}},
	{pkg: "env/docker", may: []string{"env", "env/sink", "env/helper", "env/helper/binaries", "env/scratch", "env/docker/flight", "env/docker/images"}, heavy: true},
	{pkg: "env/docker/flight", std: true},
	{pkg: "env/docker/images", may: []string{"env", "env/docker/flight"}},
	{pkg: "env/docker/images/registry", may: []string{"env", "env/docker/flight", "env/docker/images"}, heavy: true},
	{pkg: "model/route", may: []string{"model"}, std: true},
	{pkg: "model/price", may: []string{"model"}},
	{pkg: "model/openai", may: []string{"model", "model/transport"}, heavy: true},
	{pkg: "model/anthropic", may: []string{"model", "model/transport"}, heavy: true},
	{pkg: "model/governor", may: []string{"model"}, std: true},
	{pkg: "model/retry", may: []string{"model"}},
	{pkg: "model/scripted", may: []string{"model", "trajectories"}},
	{pkg: "model/fake", may: []string{"model", "model/scripted", "trajectories"}},
	{pkg: "model/modeltest", may: []string{"model", "model/fake", "model/retry", "model/scripted", "trajectories"}},
	{pkg: "trajectories", may: []string{"model"}},
	{pkg: "trajectories/formats/schema", may: []string{"model", "trajectories"}},
	{pkg: "trajectories/atif", may: []string{"model", "trajectories", "trajectories/formats/schema"}},
	{pkg: "trajectories/check", may: []string{"model", "trajectories", "trajectories/atif", "trajectories/formats/schema"}},
	{pkg: "trajectories/convert", may: []string{"model", "trajectories", "trajectories/atif", "trajectories/formats/schema"}},
	{pkg: "trajectories/export", may: []string{"model", "trajectories", "trajectories/atif", "trajectories/formats/schema"}},
	{pkg: "trajectories/export/sieve", may: []string{"model", "trajectories", "trajectories/atif", "trajectories/export", "trajectories/formats/schema"}},
	{pkg: "trajectories/timeline", may: []string{"model", "trajectories"}},
	{pkg: "trajectories/filter", may: []string{"model", "trajectories", "trajectories/timeline"}},
	{pkg: "datasets", may: nil},
	{pkg: "datasets/demo", may: []string{"datasets"}},
	{pkg: "datasets/specs", may: nil, std: true},
	{pkg: "datasets/hub", may: []string{"datasets"}},
	{pkg: "datasets/hub/hubtest", may: nil, std: true},
	{pkg: "agent", may: []string{"env", "model", "trajectories", "agent/events", "agent/worktree", "agent/protocol", "agent/pictures"}},
	{pkg: "agent/events", may: []string{"model", "trajectories"}},
	{pkg: "agent/protocol", may: []string{"env", "model"}, std: true},
	{pkg: "agent/policy", may: []string{"agent", "agent/worktree", "agent/policy/shell", "env", "model", "trajectories"}},
	{pkg: "agent/policy/shell"},
	{pkg: "agent/policy/decider", may: []string{"agent", "agent/worktree", "agent/policy", "agent/policy/shell", "agent/tools/family", "env", "model", "trajectories"}},
	{pkg: "agent/tools", may: []string{"agent", "agent/worktree", "env", "model", "trajectories"}},
	{pkg: "agent/tools/family", std: true},
	{pkg: "agent/tools/host", may: []string{"agent", "agent/tools", "agent/tools/family", "agent/worktree", "env", "model", "trajectories"}},
	{pkg: "agent/tools/mcp", may: []string{"agent", "agent/tools", "agent/tools/family", "agent/worktree", "env", "model", "trajectories"}, heavy: true},
	{pkg: "agent/skills", may: []string{"agent", "agent/tools", "agent/worktree", "env", "model", "trajectories"}},
	{pkg: "agent/memory", may: []string{"agent", "agent/tools", "agent/worktree", "env", "model", "trajectories"}},
	{pkg: "agent/delegate", may: []string{"agent", "agent/policy/shell", "agent/tools", "agent/worktree", "env", "model", "trajectories"}},
	{pkg: "agent/pictures", may: []string{"env", "model"}, std: true},
	{pkg: "agent/pictures/web", may: []string{"agent/pictures", "env", "model"}, std: true},
	{pkg: "agent/worktree", may: []string{"env"}},
	{pkg: "runner/rootdir", std: true},
	{pkg: "runner", may: []string{
		"runner/rootdir", "runner/replay", "agent", "agent/worktree", "env", "model", "datasets", "trajectories", "runner/verdicts",
		"datasets/specs", "runner/grade", "runner/grade/logs", "runner/grade/logfile", "runner/grade/script", "runner/grade/suspect",
	}},
	{pkg: "runner/control", may: []string{"runner", "runner/replay", "agent", "agent/worktree", "env", "model", "datasets", "trajectories"}},
	{pkg: "runner/report", may: []string{
		"runner", "runner/replay", "agent", "agent/worktree", "env", "model", "datasets", "trajectories",
		"runner/grade/saved", "runner/evaluate", "runner/regrade",
	}},
	{pkg: "runner/submission", may: []string{"runner", "runner/replay", "agent", "agent/worktree", "env", "model", "datasets", "trajectories"}},
	{pkg: "runner/replay", may: []string{"agent", "agent/worktree", "env", "model", "trajectories"}},
	{pkg: "runner/regrade", may: []string{"runner", "runner/replay", "agent", "agent/worktree", "env", "model", "datasets", "trajectories", "runner/evaluate"}},
	{pkg: "runner/verdicts", may: []string{
		"runner/rootdir", "env", "model", "datasets", "trajectories",
		"datasets/specs", "runner/grade", "runner/grade/logs", "runner/grade/logfile", "runner/grade/script", "runner/grade/suspect",
	}},
	{pkg: "runner/grade/logs", std: true},
	{pkg: "runner/grade/corpustest", std: true},
	{pkg: "runner/grade/logfile", std: true},
	{pkg: "runner/grade", may: []string{"datasets", "datasets/specs", "runner/grade/logs", "runner/grade/logfile"}},
	{pkg: "runner/grade/saved", may: []string{"datasets", "datasets/specs", "runner/grade", "runner/grade/logs", "runner/grade/logfile"}},
	{pkg: "runner/grade/script", may: []string{"datasets", "datasets/specs"}},
	{pkg: "runner/grade/suspect", may: []string{"datasets", "datasets/specs", "runner/grade/script"}},
	{pkg: "runner/evaluate", may: []string{"runner", "runner/replay", "agent", "agent/worktree", "env", "model", "datasets", "trajectories"}},
	{pkg: "configs", may: []string{"agent", "agent/tools", "agent/skills", "agent/memory", "agent/delegate", "agent/policy", "agent/policy/shell", "agent/worktree", "env", "model", "trajectories"}},
	{pkg: "examples/embed", may: []string{"agent", "agent/worktree", "env", "model", "trajectories"}},
	{pkg: "examples/tools", may: []string{"agent", "agent/tools", "agent/worktree", "env", "model", "trajectories"}},
}

// with says which packages may be where another one may be, being a part of it.
var with = map[string]string{
	"agent/protocol": "agent", "agent/events": "agent", "agent/pictures": "agent",
	"runner/rootdir": "runner", "runner/verdicts": "runner", "runner/grade": "runner", "runner/grade/logs": "runner", "runner/grade/logfile": "runner",
	"runner/grade/script": "runner", "runner/grade/suspect": "runner", "datasets/specs": "runner",
}

// everywhere are packages without domain knowledge, which all others may use.
var everywhere = []string{"internal/text", "internal/atomicfile", "internal/lazyregexp"}

// heavy are clients that only leaf packages, and the command, may link.
var heavy = []string{"github.com/docker/docker", "github.com/sashabaranov/go-openai", "github.com/modelcontextprotocol/go-sdk"}

func TestImportsPointInward(t *testing.T) {
	for _, r := range rules {
		t.Run(r.pkg, func(t *testing.T) {
			t.Parallel()
			for _, dep := range deps(t, module+r.pkg) {
				ours, ok := strings.CutPrefix(dep, module)
				switch {
				case ok && slices.Contains(everywhere, ours):
				case ok && ours != r.pkg && !slices.Contains(r.may, ours) && !slices.Contains(r.may, with[ours]):
					t.Errorf("%s depends on %s, which is against the rule", r.pkg, ours)
				case !ok && r.std && strings.Contains(strings.Split(dep, "/")[0], "."):
					t.Errorf("%s depends on %s; it is for the standard library only", r.pkg, dep)
				case !ok && !r.heavy && slices.ContainsFunc(heavy, func(h string) bool { return strings.HasPrefix(dep, h) }):
					t.Errorf("%s links %s, which belongs in a leaf package", r.pkg, dep)
				}
			}
		})
	}
}

// TestEveryPackageHasARule finds a package that nobody thought of.
func TestEveryPackageHasARule(t *testing.T) {
	free := []string{
		"env/envtest", "env/docker/dockertest", "env/docker/registrytest", "env/helper/server", "env/helper/binaries",
		"env/helper/child/childtest", "model/transport",
	} // bound through their users
	for _, pkg := range goList(t, "./...") {
		ours := strings.TrimPrefix(pkg, module)
		if strings.HasPrefix(ours, "cmd/mini") || slices.Contains(free, ours) {
			continue
		}
		if !slices.ContainsFunc(rules, func(r rule) bool { return r.pkg == ours }) {
			t.Errorf("package %s has no rule in this test", ours)
		}
	}
}

func deps(t *testing.T, pkg string) []string {
	t.Helper()
	return goList(t, "-deps", pkg)
}

func goList(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %v: %v", args, err)
	}
	return strings.Fields(string(out))
}

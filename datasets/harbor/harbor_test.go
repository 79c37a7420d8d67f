package harbor_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/harbor"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// write makes the files of a task: content by name. It returns the folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

// minimal returns the files of a task with this task.toml.
func minimal(config string) map[string]string {
	return map[string]string{
		"task.toml": config, "instruction.md": "Do it.\n", "environment/Dockerfile": "FROM scratch\n", "tests/test.sh": "true\n",
	}
}

func TestTasks(t *testing.T) {
	src, err := harbor.Open("testdata/tasks")
	require.NoError(t, err)
	set, err := datasets.Load(t.Context(), []datasets.Source{src}, datasets.AllRows)
	require.NoError(t, err)
	var ids []string
	for _, in := range set.Instances {
		ids = append(ids, in.ID)
		if err := harbor.Problem(in); err != nil {
			t.Errorf("%s: %v", in.ID, err)
		}
		if !filepath.IsAbs(in.TaskDir) || in.Image == "" || strings.Contains(in.ProblemStatement, "canary") {
			t.Errorf("%s: folder %q, image %q, %q", in.ID, in.TaskDir, in.Image, in.ProblemStatement)
		}
	}
	if len(ids) != 14 || !slices.IsSorted(ids) {
		t.Errorf("%d tasks: %v", len(ids), ids)
	}
}

func TestConfig(t *testing.T) {
	for _, tt := range []struct {
		name, config string
		check        func(*harbor.Task) bool
	}{
		{"old version", "version = \"1.0\"\n[environment]\nmemory = \"2G\"", func(k *harbor.Task) bool { return k.Environment.Memory() == 2<<30 && k.Version() == "1.0" }},
		{"kilobytes", "[environment]\nmemory = \"524288K\"", func(k *harbor.Task) bool { return k.Environment.Memory() == 512<<20 }},
		{"memory_mb", "[environment]\nmemory_mb = 100\nmemory = \"2G\"", func(k *harbor.Task) bool { return k.Environment.Memory() == 100<<20 }},
		{"no version", "", func(k *harbor.Task) bool { return k.Version() == "1.4" && len(k.Steps) == 1 && !k.MultiStep }},
		{"unknown keys", "new = 1\n[metadata]\nany = 1\n[environment.new]\nx = [1]\n[verifier]\ntimeout = 5", func(k *harbor.Task) bool {
			return slices.Equal(k.UnknownKeys, []string{"new", "environment.new", "environment.new.x", "verifier.timeout"})
		}},
		{"the agent without a network", "[agent]\nnetwork_mode = \"no-network\"", func(k *harbor.Task) bool {
			return k.ChangesNetwork() && k.Environment.IsOffline(k.Steps[0].Agent) && !k.Environment.IsOffline(k.Steps[0].Verifier.Phase)
		}},
		{"the verifier without a network", "[verifier]\nnetwork_mode = \"no-network\"", (*harbor.Task).ChangesNetwork},
		{"a separate verifier without a network", "[verifier]\nnetwork_mode = \"no-network\"\nenvironment_mode = \"separate\"", func(k *harbor.Task) bool { return !k.ChangesNetwork() }},
		{"no network at all", "[environment]\nnetwork_mode = \"no-network\"", func(k *harbor.Task) bool { return !k.ChangesNetwork() }},
		{"user as number", "[agent]\nuser = 1000", func(k *harbor.Task) bool { return k.Steps[0].Agent.User == "1000" }},
		{"no internet", "[environment]\nallow_internet = false", func(k *harbor.Task) bool { return k.Environment.IsOffline(k.Agent) }},
		{"network_mode wins", "[environment]\nallow_internet = false\nnetwork_mode = \"public\"", func(k *harbor.Task) bool { return !k.Environment.IsOffline(k.Agent) }},
		{"separate by its environment", "[verifier.environment]\ndocker_image = \"x\"", func(k *harbor.Task) bool { return k.IsSeparate(k.Steps[0]) }},
		{"shared by default", "", func(k *harbor.Task) bool { return !k.IsSeparate(k.Steps[0]) }},
		{"artifacts", "artifacts = [\"/a\", {source = \"/b\", destination = \"c\", exclude = [\"d\"]}]", func(k *harbor.Task) bool {
			return len(k.Artifacts) == 2 && k.Artifacts[0].Source == "/a" && k.Artifacts[1].Destination == "c" && k.Artifacts[1].Exclude[0] == "d"
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			task, err := harbor.Read(write(t, minimal(tt.config)))
			if err != nil || !tt.check(task) {
				t.Errorf("%v: %+v", err, task)
			}
		})
	}
}

// The keys of Harbor 0.22, each with a value: they are read, or else refused.
func TestKeysOfHarbor(t *testing.T) {
	environment := []struct{ config, refused string }{
		{"build_timeout_sec = 1.5", ""},
		{"docker_image = \"x\"", ""},
		{"os = \"Linux\"", ""},
		{"os = \"windows\"", "Linux containers only"},
		{"cpus = 1", ""},
		{"memory_mb = 100", ""},
		{"storage_mb = 100", ""},
		{"memory = \"2G\"", ""},
		{"storage = \"2G\"", ""},
		{"gpus = 0", ""},
		{"gpus = 1", "no GPUs"},
		{"gpu_types = [\"T4\"]", "no GPUs"},
		{"tpu = {type = \"v4\", topology = \"2x2\"}", "no TPUs"},
		{"network_mode = \"no-network\"", ""},
		{"network_mode = \"allowlist\"", "no allowlist of hosts"},
		{"allowed_hosts = [\"example.com\"]", "no allowlist of hosts"},
		{"allow_internet = false", ""},
		{"workdir = \"/x\"", ""},
		{"env = {A = \"1\"}", ""},
		{"mcp_servers = [{name = \"a\", transport = \"sse\", url = \"http://x\"}, {name = \"b\", transport = \"stdio\", command = \"c\", args = [\"d\"]}]", ""},
		{"skills_dir = \"/skills\"", ""},
		{"healthcheck = {command = \"true\", interval_sec = 1, timeout_sec = 1, start_period_sec = 1, start_interval_sec = 1, retries = 1}", ""},
	}
	phase := []struct{ config, refused string }{
		{"timeout_sec = 5", ""},
		{"user = \"app\"", ""},
		{"network_mode = \"no-network\"", ""},
		{"network_mode = \"allowlist\"", "no allowlist of hosts"},
		{"allowed_hosts = [\"example.com\"]", "no allowlist of hosts"},
	}
	verifier := append([]struct{ config, refused string }{
		{"env = {A = \"1\"}", ""},
		{"environment_mode = \"separate\"", ""},
		{"collect = [{command = \"true\", service = \"main\", timeout_sec = 5, user = 1000}]", ""},
		{"collect = [{command = \"true\", service = \"db\"}]", "one container, main"},
		{"collect = [{command = \"true\", user = \"a b\"}]", "not the name of a user"},
		{"collect = [{command = \"true\", timeout_sec = 0}]", "not a number of seconds"},
		{"collect = [{user = \"app\"}]", "command is missing"},
	}, phase...)
	artifacts := []struct{ config, refused string }{
		{"artifacts = [\"/a\", {source = \"/b\", destination = \"c\", exclude = [\"d\"], service = \"main\"}]", ""},
		{"artifacts = [{source = \"/b\", service = \"db\"}]", "one container, main"},
	}
	step := append([]struct{ config, refused string }{
		{"min_reward = 1", ""},
		{"min_reward = {reward = 0.5, style = 1}", ""},
		{"healthcheck = {command = \"true\"}", ""},
	}, artifacts...)
	for prefix, all := range map[string][]struct{ config, refused string }{
		"": append([]struct{ config, refused string }{
			{"schema_version = \"1.4\"", ""},
			{"version = \"1.0\"", ""},
			{"source = \"x\"", ""},
			{"multi_step_reward_strategy = \"final\"", ""},
			{"task = {name = \"a/b\", version = \"1\", description = \"d\", keywords = [\"k\"], authors = [{name = \"a\", email = \"b\"}]}", ""},
			{"metadata = {any = {thing = 1}}", ""},
			{"solution = {env = {A = \"1\"}}", ""},
		}, artifacts...),
		"[environment]\n":                                           environment,
		"[verifier.environment]\n":                                  environment,
		"[agent]\n":                                                 phase,
		"[verifier]\n":                                              verifier,
		"[[steps]]\nname = \"one\"\n":                               step,
		"[[steps]]\nname = \"one\"\n[steps.agent]\n":                phase,
		"[[steps]]\nname = \"one\"\n[steps.verifier]\n":             verifier,
		"[[steps]]\nname = \"one\"\n[steps.verifier.environment]\n": environment,
	} {
		for _, tt := range all {
			files := minimal(prefix + tt.config)
			files["steps/one/instruction.md"] = "One."
			task, err := harbor.Read(write(t, files))
			switch {
			case tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused)):
				t.Errorf("%s%s: %v, want %s", prefix, tt.config, err, tt.refused)
			case tt.refused == "" && (err != nil || len(task.UnknownKeys) > 0):
				t.Errorf("%s%s: %v, %+v", prefix, tt.config, err, task)
			}
		}
	}
	for _, name := range []string{"trajectory.json", "steps/one/trajectory.json"} {
		files := minimal("[[steps]]\nname = \"one\"\n")
		files["steps/one/instruction.md"], files[name] = "One.", "{}"
		if task, err := harbor.Read(write(t, files)); err != nil || task.Trajectory != name {
			t.Errorf("%s: %v, %+v", name, err, task)
		}
	}
}

func TestStepsInherit(t *testing.T) {
	files := minimal("[agent]\ntimeout_sec = 5\nuser = \"u\"\n[verifier]\ntimeout_sec = 7\n[[verifier.collect]]\ncommand = \"a\"\n[verifier.environment]\n[verifier.env]\nA = \"1\"\nB = \"1\"\n[[steps]]\nname = \"one\"\nmin_reward = 1\n[steps.verifier]\nenvironment_mode = \"shared\"\n[[steps.verifier.collect]]\ncommand = \"b\"\n[steps.verifier.env]\nB = \"2\"\n[[steps]]\nname = \"two\"\n[steps.agent]\ntimeout_sec = 9\n")
	files["steps/one/instruction.md"], files["steps/two/instruction.md"] = "One.", "Two."
	task, err := harbor.Read(write(t, files))
	require.NoError(t, err)
	one, two := task.Steps[0], task.Steps[1]
	if *one.Agent.Timeout != 5 || *two.Agent.Timeout != 9 || two.Agent.User != "u" || one.Verifier.Env["A"] != "1" || one.Verifier.Env["B"] != "2" || two.Verifier.Env["B"] != "1" {
		t.Errorf("%+v\n%+v", one, two)
	}
	if one.Verifier.Timeout != nil || len(one.Verifier.Collect) != 2 || len(two.Verifier.Collect) != 1 || task.IsSeparate(one) || !task.IsSeparate(two) {
		t.Errorf("as in Harbor, a step has a time limit of its own and runs all commands of collect: %+v\n%+v", one.Verifier, two.Verifier)
	}
	if one.MinReward.IsReached(map[string]float64{"reward": 0.9}) || one.MinReward.IsReached(nil) || !one.MinReward.IsReached(map[string]float64{"reward": 1}) || !two.MinReward.IsReached(nil) {
		t.Error("min_reward")
	}
}

func TestRefused(t *testing.T) {
	for _, tt := range []struct{ config, want string }{
		{"schema_version = \"2.0\"", "mini reads 1.0 to 1.4"},
		{"x = [", "task.toml: toml: line 1"},
		{"[environment]\nnetwork_mode = \"allowlist\"", "no allowlist of hosts"},
		{"[agent]\nallowed_hosts = [\"a\"]", "no allowlist of hosts"},
		{"[environment]\nos = \"windows\"", "Linux containers only"},
		{"[environment]\ngpus = 2", "no GPUs"},
		{"[environment.tpu]\ntype = \"v5\"", "no TPUs"},
		{"[environment]\nmemory = \"many\"", "not a size"},
		{"[environment]\nworkdir = \"here\"", "not an absolute path"},
		{"[agent]\nuser = \"a b\"", "not the name of a user"},
		{"[agent]\ntimeout_sec = -1", "not a number of seconds"},
		{"[agent]\ntimeout_sec = nan", "not a number of seconds"},
		{"[verifier]\nenvironment_mode = \"shared\"\n[verifier.environment]\n", "no environment of its own"},
		{"[[steps]]\nname = \"../x\"", "not the name of a folder"},
		{"[[steps]]\nname = \"missing\"", "there is no steps/missing/instruction.md"},
		{"artifacts = [\"relative\"]", "an absolute path"},
		{"artifacts = [{source = \"/a\", destination = \"../../b\"}]", "outside the folder"},
		{"[task]\nname = \"x/../y\"", "org/name"},
		{"[environment.healthcheck]\ninterval_sec = 1", "healthcheck.command is missing"},
	} {
		_, err := harbor.Read(write(t, minimal(tt.config)))
		assert.ErrorContains(t, err, tt.want, "%q", tt.config)
	}
	for _, name := range slices.Sorted(maps.Keys(minimal(""))) {
		files := minimal("")
		delete(files, name)
		_, err := harbor.Read(write(t, files))
		assert.Error(t, err, "a task without %s", name)
	}
}

func TestLinksStayInFolder(t *testing.T) {
	secret := filepath.Join(write(t, map[string]string{"secret": "s"}), "secret")
	dir := write(t, minimal(""))
	require.NoError(t, os.Remove(filepath.Join(dir, "instruction.md")))
	require.NoError(t, os.Symlink(secret, filepath.Join(dir, "instruction.md")))
	if _, err := harbor.Read(dir); err == nil {
		t.Error("an instruction outside the folder was read")
	}
	env := filepath.Join(dir, "environment")
	_, err := harbor.HashFolder(env)
	assert.NoError(t, err)
	require.NoError(t, os.Symlink("../task.toml", filepath.Join(env, "link")))
	_, err = harbor.HashFolder(env)
	assert.Error(t, err, "a link that leaves the folder was hashed")
}

func TestHashFolder(t *testing.T) {
	hash := func(files map[string]string) string {
		t.Helper()
		sum, err := harbor.HashFolder(write(t, files))
		require.NoError(t, err)
		return sum
	}
	a := hash(map[string]string{"a": "1", "b/c": "2"})
	assert.Equal(t, hash(map[string]string{"a": "1", "b/c": "2"}), a, "equal folders have different hashes")
	if a == hash(map[string]string{"a": "1", "b/c": "3"}) || a == hash(map[string]string{"a": "1", "b/d": "2"}) {
		t.Error("different folders have the same hash")
	}
}

func TestExpand(t *testing.T) {
	lookup := func(name string) (string, bool) { return "host", name == "ALLOWED" }
	got, err := harbor.Expand(map[string]string{"A": "${ALLOWED}", "B": "${OTHER:-d}", "C": "x ${ALLOWED}", "D": "${ALLOWED:-d}", "E": "${OTHER:-}"}, lookup)
	want := map[string]string{"A": "host", "B": "d", "C": "x ${ALLOWED}", "D": "host", "E": ""}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	_, err = harbor.Expand(map[string]string{"A": "${OTHER}"}, lookup)
	assert.Error(t, err, "a variable without a value was expanded")
}

func TestRegistry(t *testing.T) {
	dir := write(t, map[string]string{
		"registry.json": `[{"name": "s", "version": "1", "tasks": [{"name": "t", "path": "sets/t"}]}, {"name": "out", "version": "1", "tasks": [{"name": "t", "path": "../t"}]}]`,
	})
	for name, text := range minimal("") {
		path := filepath.Join(dir, "sets/t", filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	file := harbor.RegistryPrefix + filepath.Join(dir, "registry.json")
	src, err := harbor.OpenRegistry(file + "#s@1")
	require.NoError(t, err)
	if set, err := datasets.Load(t.Context(), []datasets.Source{src}, datasets.NoRows); err != nil || !slices.Equal(set.IDs, []string{"t"}) {
		t.Errorf("%v, %v", set.IDs, err)
	}
	for _, name := range []string{"#out@1", "#s@2", ""} {
		_, err := harbor.OpenRegistry(file + name)
		assert.Error(t, err, "%q was opened", name)
	}
}

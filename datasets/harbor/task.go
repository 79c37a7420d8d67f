// Package harbor reads tasks in the form of Harbor (Terminal-Bench): folders with a
// task.toml, an instruction, the files of an image, and tests.
//
//	task, err := harbor.Read("tasks/hello-world")
//	rows, err := harbor.Open("tasks")
//
// Task folders may come from anywhere: every read is bounded and stays in the folder.
package harbor

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/internal/rootdir"
)

// Task is a task folder.
type Task struct {
	Dir string // absolute
	Config
	Steps []Step // at least one
	// MultiStep reports whether Steps are those of task.toml. A task without steps has one
	// step, whose files are those of the task.
	MultiStep     bool
	HasDockerfile bool
	// Trajectory is the name of the file with the conversation with which an agent begins,
	// in ATIF; "" if it begins without one.
	Trajectory string
	// UnknownKeys are the keys of task.toml that Harbor 0.22 does not know. They have no
	// effect.
	UnknownKeys []string
}

// Step is a part of a task with an instruction and tests of its own.
type Step struct {
	StepConfig
	Instruction string
	// Dir is the folder of the step below the task's folder; "" for a task without steps.
	Dir string
}

// maxText bounds task.toml and each instruction, in bytes.
const maxText = 1 << 20

// Read reads the folder of a task. The error says in which way it is not a task that mini
// runs.
func Read(dir string) (*Task, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root, err := rootdir.Open(path)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // only read
	t := &Task{Dir: path}
	data, err := root.ReadFile(filepath.Join(path, "task.toml"), maxText)
	if err != nil {
		return nil, missing("task.toml", err)
	}
	meta, err := toml.Decode(string(data), &t.Config)
	if err != nil {
		return nil, fmt.Errorf("task.toml: %w", err)
	}
	for _, key := range meta.Undecoded() {
		if key[0] != "metadata" { // a table of any keys
			t.UnknownKeys = append(t.UnknownKeys, key.String())
		}
	}
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("task.toml: %w", err)
	}
	return t, t.readFiles(root)
}

// readFiles reads the instructions, and checks which files exist.
func (t *Task) readFiles(root *rootdir.Dir) error {
	isDir := func(name string) bool {
		info, err := root.Lstat(filepath.Join(t.Dir, name))
		return err == nil && info.IsDir()
	}
	isFile := func(name string) bool {
		info, err := root.Lstat(filepath.Join(t.Dir, name))
		return err == nil && info.Mode().IsRegular()
	}
	if !isDir("environment") {
		return errors.New("there is no folder environment")
	}
	for _, name := range []string{"docker-compose.yaml", "docker-compose.yml"} {
		if isFile("environment/" + name) {
			return fmt.Errorf("environment/%s: mini runs one container, without docker compose", name)
		}
	}
	t.HasDockerfile = isFile("environment/Dockerfile")
	if t.Environment.DockerImage == "" && !t.HasDockerfile {
		return errors.New("there is neither environment/Dockerfile nor environment.docker_image")
	}
	t.MultiStep = len(t.Config.Steps) > 0
	t.Steps = []Step{{StepConfig: StepConfig{Agent: t.Agent, Verifier: t.Verifier}}}
	if t.MultiStep {
		t.Steps = nil
		for _, c := range t.Config.Steps {
			t.Steps = append(t.Steps, Step{StepConfig: c.inherit(t.Config), Dir: "steps/" + c.Name})
		}
	}
	for i := range t.Steps {
		s := &t.Steps[i]
		for _, dir := range []string{"", s.Dir} {
			if name := filepath.Join(dir, "trajectory.json"); isFile(name) {
				t.Trajectory = filepath.ToSlash(name)
			}
		}
		data, err := root.ReadFile(filepath.Join(t.Dir, s.Dir, "instruction.md"), maxText)
		if err != nil {
			return missing(filepath.ToSlash(filepath.Join(s.Dir, "instruction.md")), err)
		}
		s.Instruction = withoutCanary(string(data))
		if strings.TrimSpace(s.Instruction) == "" {
			return fmt.Errorf("%s: it is empty", filepath.ToSlash(filepath.Join(s.Dir, "instruction.md")))
		}
		tests := filepath.Join(s.Dir, "tests", "test.sh")
		if !isFile(tests) && !isFile("tests/test.sh") && (!t.IsSeparate(*s) || !isFile("tests/Dockerfile")) {
			return fmt.Errorf("there is no %s", filepath.ToSlash(tests))
		}
	}
	return nil
}

// missing returns an error about a file that cannot be read.
func missing(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no %s", name)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// canary matches the lines that mark the text of benchmarks for filters of training data.
var canary = lazyregexp.New(`(?i)^\s*(#|<!--).*canary.*$`)

// withoutCanary removes the canary lines at the start of an instruction.
func withoutCanary(text string) string {
	for {
		line, rest, _ := strings.Cut(text, "\n")
		if rest == "" || strings.TrimSpace(line) != "" && !canary.MatchString(line) {
			return text
		}
		text = rest
	}
}

// IsSeparate reports whether a step is verified in a container of its own.
func (t *Task) IsSeparate(s Step) bool {
	if s.Verifier.Mode == "" {
		return s.Verifier.Environment != nil
	}
	return s.Verifier.Mode == modeSeparate
}

// ChangesNetwork reports whether phases in the container of the agent have different
// networks.
func (t *Task) ChangesNetwork() bool {
	first := t.Environment.IsOffline(t.Steps[0].Agent)
	return slices.ContainsFunc(t.Steps, func(s Step) bool {
		return t.Environment.IsOffline(s.Agent) != first || !t.IsSeparate(s) && t.Environment.IsOffline(s.Verifier.Phase) != first
	})
}

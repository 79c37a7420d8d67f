package harbor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/rootdir"
)

// ImagePrefix begins the names of the images that are built from environment folders; the
// hash of the folder follows.
const ImagePrefix = "mini-harbor-"

// maxTasks bounds the tasks of a folder or a registry.
const maxTasks = 20_000

// IsTasks reports whether a path is a task folder, or a folder of tasks.
func IsTasks(path string) bool {
	if isTask(path) {
		return true
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() { // do not open a pipe
		return false
	}
	entries, err := os.ReadDir(path)
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return isTask(filepath.Join(path, e.Name())) })
}

// isTask reports whether a folder is a task, or one that lacks a task.toml.
func isTask(path string) bool {
	for _, name := range []string{"task.toml", "instruction.md"} {
		if info, err := os.Stat(filepath.Join(path, name)); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// Open returns the tasks of a folder as rows: the folder itself if it is a task, or else its
// subfolders that are, sorted by name. The id of a row is the name of the task's folder. A
// folder that is almost a task, or a task that mini does not run, is a row with a problem
// (see Problem).
func Open(path string) (datasets.Source, error) {
	if isTask(path) {
		abs, err := filepath.Abs(path)
		if err != nil {
			return datasets.Source{}, err
		}
		return newSource(path, []entry{{filepath.Base(abs), path}})
	}
	dirs, err := os.ReadDir(path) // sorted
	if err != nil {
		return datasets.Source{}, err
	}
	var tasks []entry
	for _, d := range dirs {
		dir := filepath.Join(path, d.Name())
		if info, err := os.Stat(dir); err != nil || !info.IsDir() || strings.HasPrefix(d.Name(), ".") {
			continue
		}
		if isTask(dir) {
			tasks = append(tasks, entry{d.Name(), dir})
		}
	}
	return newSource(path, tasks)
}

// entry is a task folder and the id of its row.
type entry struct{ id, dir string }

func newSource(name string, tasks []entry) (datasets.Source, error) {
	if len(tasks) > maxTasks {
		return datasets.Source{}, fmt.Errorf("%s: more than %d tasks", name, maxTasks)
	}
	var rows []byte
	dirs := map[string]string{}
	for _, e := range tasks {
		row, err := json.Marshal(newRow(e))
		if err != nil {
			return datasets.Source{}, fmt.Errorf("%s: %w", e.dir, err)
		}
		if dirs[e.id], err = filepath.Abs(e.dir); err != nil {
			return datasets.Source{}, err
		}
		rows = append(append(rows, row...), '\n')
	}
	return datasets.Tasks(name, rows, dirs), nil
}

// newRow returns the columns of a task.
func newRow(e entry) map[string]any {
	row := map[string]any{"instance_id": e.id, "problem_statement": ""}
	t, err := Read(e.dir)
	if err != nil {
		row["problem"] = err.Error()
		return row
	}
	row["problem_statement"], row["schema_version"] = t.Steps[0].Instruction, t.Version()
	if t.Info.Name != "" {
		row["task_name"] = t.Info.Name
	}
	if t.MultiStep {
		row["steps"] = len(t.Steps)
	}
	for _, name := range []string{"difficulty", "category", "tags"} {
		if v, ok := t.Metadata[name]; ok {
			row[name] = v
		}
	}
	sum, err := HashFolder(t.Dir)
	if err == nil {
		row["task_sha256"] = sum
		row["image"], err = t.Image()
	}
	if err != nil {
		row["problem"] = err.Error()
	}
	return row
}

// Problem returns why mini cannot run a row of a task; nil if it can.
func Problem(in datasets.Instance) error {
	var text string
	if err := json.Unmarshal(in.Row["problem"], &text); in.TaskDir == "" || err != nil {
		return nil //nolint:nilerr // the column is not there
	}
	return errors.New(text)
}

// Image returns the name of the task's image: environment.docker_image, or else one with the
// hash of the folder environment, from which the image is built.
func (t *Task) Image() (string, error) {
	if t.Environment.DockerImage != "" {
		return t.Environment.DockerImage, nil
	}
	return buildName(filepath.Join(t.Dir, "environment"))
}

func buildName(dir string) (string, error) {
	sum, err := HashFolder(dir)
	return ImagePrefix + sum[:min(24, len(sum))], err
}

// RegistryPrefix begins the name of a set of a registry file: harbor:FILE#NAME@VERSION.
const RegistryPrefix = "harbor:"

// maxRegistry bounds a registry file, in bytes.
const maxRegistry = 64 << 20

// OpenRegistry returns the tasks of a set in a registry file. name is FILE#NAME@VERSION. The
// tasks are folders of the checkout with the file; their git_url and git_commit_id are not
// fetched.
func OpenRegistry(name string) (datasets.Source, error) {
	file, set, ok := strings.Cut(strings.TrimPrefix(name, RegistryPrefix), "#")
	if !ok {
		return datasets.Source{}, fmt.Errorf("%.200q: name the set: harbor:FILE#NAME@VERSION", name)
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return datasets.Source{}, err
	}
	root, err := rootdir.Open(filepath.Dir(path))
	if err != nil {
		return datasets.Source{}, err
	}
	defer root.Close() //nolint:errcheck // only read
	data, err := root.ReadFile(path, maxRegistry)
	if err != nil {
		return datasets.Source{}, err
	}
	var sets []struct {
		Name, Version string
		Tasks         []struct{ Name, Path string }
	}
	if err := json.Unmarshal(data, &sets); err != nil {
		return datasets.Source{}, fmt.Errorf("%s: not a registry of Harbor: %w", file, err)
	}
	var known []string
	for _, s := range sets {
		full := s.Name + "@" + s.Version
		known = append(known, full)
		if full != set && s.Name != set {
			continue
		}
		var tasks []entry
		for _, t := range s.Tasks {
			if !filepath.IsLocal(filepath.FromSlash(t.Path)) {
				return datasets.Source{}, fmt.Errorf("%s: the path %.80q of the task %.80q leaves the checkout", file, t.Path, t.Name)
			}
			dir := filepath.Join(filepath.Dir(path), filepath.FromSlash(t.Path))
			if _, err := root.Lstat(filepath.Join(dir, "task.toml")); err != nil {
				return datasets.Source{}, fmt.Errorf("%s: the task %.80q is not in this checkout: %w", file, t.Name, err)
			}
			tasks = append(tasks, entry{filepath.Base(dir), dir})
		}
		return newSource(name, tasks)
	}
	return datasets.Source{}, fmt.Errorf("%s has no set %.80q; it has %.500s", file, set, strings.Join(known, ", "))
}

// VerifierImage returns the image of a separate verifier, and the folder from which it is
// built; "" if it is not. Without an environment of its own, the verifier has the image of
// the task.
func (t *Task) VerifierImage(s Step) (image, dir string, err error) {
	if e := s.Verifier.Environment; e != nil {
		if e.DockerImage != "" {
			return e.DockerImage, "", nil
		}
		for _, tests := range []string{filepath.Join(t.Dir, filepath.FromSlash(s.Dir), "tests"), filepath.Join(t.Dir, "tests")} {
			if info, err := os.Lstat(filepath.Join(tests, "Dockerfile")); err == nil && info.Mode().IsRegular() {
				image, err = buildName(tests)
				return image, tests, err
			}
		}
	}
	image, err = t.Image()
	if t.Environment.DockerImage == "" {
		dir = filepath.Join(t.Dir, "environment")
	}
	return image, dir, err
}

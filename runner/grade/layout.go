package grade

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/minibench/mini/datasets"
)

// Layout has the paths of the files of one evaluation. They equal those of the official
// harness, so that other tools find the files:
//
//	DIR/logs/run_evaluation/RUN/run.json
//	DIR/logs/run_evaluation/RUN/MODEL/INSTANCE/report.json and the others of Files
//	DIR/MODEL.RUN.json
type Layout struct {
	dir, runID string
}

// ErrInvalidName reports a name that cannot be used as a file or folder name.
var ErrInvalidName = errors.New("is not a valid file name")

// NewLayout returns the layout of the evaluation with a run id below dir. It
// creates no files. The error wraps ErrInvalidName.
func NewLayout(dir, id string) (Layout, error) {
	if err := checkName("run id", id, id); err != nil {
		return Layout{}, err
	}
	return Layout{dir: dir, runID: id}, nil
}

// RunID returns the run id.
func (l Layout) RunID() string { return l.runID }

// Dir returns the folder of the evaluation's logs.
func (l Layout) Dir() string {
	return filepath.Join(l.dir, datasets.LogsDir, "run_evaluation", l.runID)
}

// RunInfoPath returns the path of run.json.
func (l Layout) RunInfoPath() string { return filepath.Join(l.Dir(), "run.json") }

// SummaryName returns the file name of the official summary. model is the model of
// the first prediction. The error wraps ErrInvalidName.
func (l Layout) SummaryName(model string) (string, error) {
	folder := modelDirName(model)
	if err := checkName("model", model, folder); err != nil {
		return "", err
	}
	name := folder + "." + l.runID + ".json"
	return name, checkName("model and run id together", name, name)
}

// Files returns the paths of the files of one evaluated patch. It checks model and
// instanceID, which are untrusted; the error wraps ErrInvalidName.
func (l Layout) Files(model, instanceID string) (Files, error) {
	folder := modelDirName(model)
	if err := checkName("model", model, folder); err != nil {
		return Files{}, err
	}
	if err := checkName("instance id", instanceID, instanceID); err != nil {
		return Files{}, err
	}
	return FilesIn(filepath.Join(l.Dir(), folder, instanceID)), nil
}

// FilesIn returns the paths of the files of one evaluated patch, given their folder.
func FilesIn(dir string) Files {
	join := func(name string) string { return filepath.Join(dir, name) }
	return Files{
		Dir: dir, Patch: join("patch.diff"), Script: join("eval.sh"), Log: join("run_instance.log"),
		TestOutput: join("test_output.txt"), Report: join("report.json"),
	}
}

// Files holds the paths of the files of one evaluated patch.
type Files struct {
	Dir        string // the folder of the files
	Patch      string // patch.diff, the model's patch
	Script     string // eval.sh, the evaluation script
	Log        string // run_instance.log, the steps of the harness
	TestOutput string // test_output.txt; missing if the patch did not apply
	Report     string // report.json; missing if there is no verdict
}

// modelDirName returns the folder name for a model.
func modelDirName(model string) string { return strings.ReplaceAll(model, "/", "__") }

// maxName is the maximum length of a file name on common file systems, in
// bytes.
const maxName = 255

// checkName returns an error if name is not a valid file name. kind and given
// describe the name in the error.
func checkName(kind, given, name string) error {
	invalid := func(msg string) error { return fmt.Errorf("%s %.80q %w: it %s", kind, given, ErrInvalidName, msg) }
	switch {
	case name == "":
		return invalid("is empty")
	case name == "." || name == "..":
		return invalid("is a path element")
	case strings.ContainsAny(name, `/\`):
		return invalid("contains a slash")
	case len(name) > maxName:
		return invalid(fmt.Sprintf("is longer than %d bytes", maxName))
	case !utf8.ValidString(name):
		return invalid("is not valid UTF-8")
	case strings.ContainsFunc(name, unicode.IsControl):
		return invalid("contains a control character")
	}
	return nil
}

// RunInfo is the content of run.json.
type RunInfo struct {
	Dataset   string    `json:"dataset"` // as given by the user
	Split     string    `json:"split"`
	TaskRepo  *struct{} `json:"task_repo"`  // always null: mini has no task repositories
	CreatedAt string    `json:"created_at"` // ISO 8601
}

// JSON returns the content of run.json, as the official harness writes it.
func (i RunInfo) JSON() []byte { return append(pyJSON(i, narrowIndent), '\n') }

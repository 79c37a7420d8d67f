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

// Layout returns the paths of the official harness for one evaluation, so that
// other tools find its files:
//
//	DIR/logs/run_evaluation/RUN/run.json
//	DIR/logs/run_evaluation/RUN/MODEL/INSTANCE/report.json, and four more
//	DIR/MODEL.RUN.json
type Layout struct {
	dir, id string
}

// ErrInvalidName is wrapped by the error for a name that cannot be used as a
// file or folder name.
var ErrInvalidName = errors.New("is not a valid file name")

// NewLayout returns the layout of a run id below dir. It creates no files. The
// error wraps ErrInvalidName.
func NewLayout(dir, id string) (Layout, error) {
	if err := checkName("run id", id, id); err != nil {
		return Layout{}, err
	}
	return Layout{dir: dir, id: id}, nil
}

// RunID returns the run id.
func (r Layout) RunID() string { return r.id }

// Dir returns the folder of the evaluation's logs.
func (r Layout) Dir() string { return filepath.Join(r.dir, datasets.LogsDir, "run_evaluation", r.id) }

// RunInfoPath returns the path of run.json.
func (r Layout) RunInfoPath() string { return filepath.Join(r.Dir(), "run.json") }

// SummaryName returns the file name of the official summary, which contains the
// model of the first prediction. The error wraps ErrInvalidName.
func (r Layout) SummaryName(model string) (string, error) {
	folder := modelDirName(model)
	if err := checkName("model", model, folder); err != nil {
		return "", err
	}
	name := folder + "." + r.id + ".json"
	return name, checkName("model and run id together", name, name)
}

// Files returns the paths of the files of one evaluated patch. Models and
// instance ids are untrusted; the error wraps ErrInvalidName.
func (r Layout) Files(model, instanceID string) (Files, error) {
	folder := modelDirName(model)
	if err := checkName("model", model, folder); err != nil {
		return Files{}, err
	}
	if err := checkName("instance id", instanceID, instanceID); err != nil {
		return Files{}, err
	}
	return FilesIn(filepath.Join(r.Dir(), folder, instanceID)), nil
}

// FilesIn returns the paths of the files of one evaluated patch in dir.
func FilesIn(dir string) Files {
	at := func(name string) string { return filepath.Join(dir, name) }
	return Files{
		Dir: dir, Patch: at("patch.diff"), Script: at("eval.sh"), Log: at("run_instance.log"),
		TestOutput: at("test_output.txt"), Report: at("report.json"),
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

// checkName rejects a name that is not a valid file name in its folder. kind
// and given are used in the error.
func checkName(kind, given, name string) error {
	invalid := func(why string) error { return fmt.Errorf("%s %.80q %w: it %s", kind, given, ErrInvalidName, why) }
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

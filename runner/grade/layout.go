package grade

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/grade/logfile"
)

// Run is where the official harness has the files of a run, so that other
// tools find them:
//
//	DIR/logs/run_evaluation/RUN/run.json
//	DIR/logs/run_evaluation/RUN/MODEL/INSTANCE/report.json, and four more
//	DIR/MODEL.RUN.json
type Run struct {
	dir, id string
}

// ErrName is wrapped by the error for a name that cannot be that of a file or
// folder.
var ErrName = errors.New("cannot name a folder")

// NewRun is the run of this id below a folder. Nothing is made. The error
// wraps ErrName.
func NewRun(dir, id string) (Run, error) {
	if err := checkName("run id", id, id); err != nil {
		return Run{}, err
	}
	return Run{dir: dir, id: id}, nil
}

// ID is the run's id.
func (r Run) ID() string { return r.id }

// Dir is the folder of the run's logs.
func (r Run) Dir() string { return filepath.Join(r.dir, datasets.LogsDir, "run_evaluation", r.id) }

// Info is the path of run.json.
func (r Run) Info() string { return filepath.Join(r.Dir(), "run.json") }

// SummaryName is the name of the summary's file. It bears the model of the
// first prediction. The error wraps ErrName.
func (r Run) SummaryName(model string) (string, error) {
	folder := modelFolder(model)
	if err := checkName("model", model, folder); err != nil {
		return "", err
	}
	name := folder + "." + r.id + ".json"
	return name, checkName("model and run id together", name, name)
}

// Files are the paths of what an evaluation leaves. The error wraps ErrName:
// models and ids come from files of strangers.
func (r Run) Files(model, instanceID string) (Files, error) {
	folder := modelFolder(model)
	if err := checkName("model", model, folder); err != nil {
		return Files{}, err
	}
	if err := checkName("instance id", instanceID, instanceID); err != nil {
		return Files{}, err
	}
	return FilesIn(filepath.Join(r.Dir(), folder, instanceID)), nil
}

// FilesIn are the files of an evaluation in a folder of any name.
func FilesIn(dir string) Files {
	at := func(name string) string { return filepath.Join(dir, name) }
	return Files{
		Dir: dir, Patch: at("patch.diff"), Script: at("eval.sh"), Log: at("run_instance.log"),
		TestOutput: at("test_output.txt"), Report: at("report.json"),
	}
}

// Files are the paths of what the evaluation of one patch leaves.
type Files struct {
	Dir        string // has all of them
	Patch      string // patch.diff, the model's
	Script     string // eval.sh, as it was run
	Log        string // run_instance.log, of the harness
	TestOutput string // test_output.txt; missing when the patch did not apply
	Report     string // report.json; missing when there is no verdict
}

// modelFolder is the name of a model as that of a folder.
func modelFolder(model string) string { return strings.ReplaceAll(model, "/", "__") }

// maxName is how long names may be on the common file systems, in bytes.
const maxName = 255

// checkName refuses names that would leave their folder, or that no file system
// takes. what and given are for the message.
func checkName(what, given, name string) error {
	bad := func(why string) error { return fmt.Errorf("%s %.80q %w: it %s", what, given, ErrName, why) }
	switch {
	case name == "":
		return bad("is empty")
	case name == "." || name == "..":
		return bad("would lead elsewhere")
	case strings.ContainsAny(name, `/\`):
		return bad("has a slash")
	case len(name) > maxName:
		return bad(fmt.Sprintf("is longer than %d bytes", maxName))
	case !utf8.ValidString(name):
		return bad("is not UTF-8")
	case strings.ContainsFunc(name, unicode.IsControl):
		return bad("has a character that cannot be printed")
	}
	return nil
}

// RunInfo is what run.json says.
type RunInfo struct {
	Dataset   string // as the user named it
	Split     string
	TaskRepo  string // "" is null
	CreatedAt string // ISO 8601
}

// JSON is the content of run.json, as the official harness writes it.
func (i RunInfo) JSON() []byte {
	var repo any
	if i.TaskRepo != "" {
		repo = i.TaskRepo
	}
	o := object{{"dataset", i.Dataset}, {"split", i.Split}, {"task_repo", repo}, {"created_at", i.CreatedAt}}
	return append(pyJSON(o, narrow), '\n')
}

// maxInfo bounds what is read of a run.json, in bytes.
const maxInfo = 1 << 20

// ReadRunInfo reads a run.json.
func ReadRunInfo(path string) (RunInfo, error) {
	data, err := logfile.Read(path, maxInfo)
	if err != nil {
		return RunInfo{}, err
	}
	var info struct {
		Dataset   *string `json:"dataset"`
		Split     *string `json:"split"`
		TaskRepo  *string `json:"task_repo"`
		CreatedAt *string `json:"created_at"`
	}
	if err := json.Unmarshal(data, &info); err != nil {
		return RunInfo{}, fmt.Errorf("read %s: %w", path, err)
	}
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	return RunInfo{Dataset: text(info.Dataset), Split: text(info.Split), TaskRepo: text(info.TaskRepo), CreatedAt: text(info.CreatedAt)}, nil
}

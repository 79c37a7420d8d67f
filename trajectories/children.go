package trajectories

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/minibench/mini/model"
)

// A child is a subagent. The folder with one numbered folder per child is next to the
// attempt's journal: ChildrenFolderName for a journal named journal.jsonl, NAME.children
// for NAME.journal.jsonl. ChildJournalName is the name of the journal in a child's folder.
const (
	ChildJournalName   = "journal.jsonl"
	ChildrenFolderName = "children"
)

// Parent describes, in the header of a child, the attempt that delegated a part of its
// task to the child. InstanceID and Attempt in that header are those of the attempt.
type Parent struct {
	// Child is the number of this child. Numbers count from 1 over all children of the
	// attempt, including children of children.
	Child int `json:"child"`
	// Journal is the path of the attempt's journal relative to the child's folder;
	// empty if the journal is not a file.
	Journal string `json:"journal,omitempty"`
	// Step is the number of the model call that started the child. Depth is 1 if the
	// attempt itself started the child, 2 for a child of such a child, and so on.
	Step  int `json:"step"`
	Depth int `json:"depth"`
	// ParentChild is the number of the child that started this one; 0 if the attempt
	// itself started it.
	ParentChild int `json:"of,omitempty"`
	// Unattributed is set for a conversation of an agent other than mini's own of which
	// mini does not know what started it.
	Unattributed bool `json:"unattributed,omitempty"`
	// Task is the task given to the child. Skill and Profile are set if they were
	// requested.
	Task    string `json:"task"`
	Skill   string `json:"skill,omitempty"`
	Profile string `json:"profile,omitempty"`
}

// ChildResult is the result of a child, stored in the details of the tool call that
// started it.
type ChildResult struct {
	Child int `json:"child"`
	// Name is the name of the step if the child is a step of a chain of subagents.
	Name string `json:"name,omitempty"`
	Task string `json:"task"`
	// Journal is the path of the child's journal relative to the folder of the journal
	// with this result. SHA256 is the checksum of the child's journal in hex; empty if
	// the child may still be working. Both are empty if the child's journal is not a file.
	Journal string `json:"journal,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
	// Class and ExitStatus are from the child's outcome; Steps, Usage and Cost are
	// its totals.
	Class      Class       `json:"class"`
	ExitStatus string      `json:"exit_status"`
	Steps      int         `json:"steps"`
	Usage      model.Usage `json:"usage"`
	Cost       model.Cost  `json:"cost"`
	// Problem explains why the child has no usable report.
	Problem string `json:"problem,omitempty"`
}

// ChildCall is a model call of a child or of its children, recorded in the journal of the
// attempt. The call counts against the limits of the attempt and, unless Summary is set,
// as a step of the attempt.
type ChildCall struct {
	Child int `json:"child"`
	// Summary is set for a call that summarized messages.
	Summary bool        `json:"summary,omitempty"`
	Usage   model.Usage `json:"usage"`
	Cost    model.Cost  `json:"cost"`
	Start   time.Time   `json:"start"`
	// Duration includes Waited, as in Call.
	Duration Seconds `json:"duration"`
	Waited   Seconds `json:"waited,omitempty"`
}

// ModelCall is the data of a record of a model call: a Call, a Summary or a ChildCall.
type ModelCall interface {
	// OfChild returns the call as it is charged to the attempt if the child with this
	// number, or a child of it, made it.
	OfChild(child int) ChildCall
}

// OfChild implements ModelCall.
func (c Call) OfChild(child int) ChildCall {
	return ChildCall{Child: child, Usage: c.Usage, Cost: c.Cost, Start: c.Start, Duration: c.Duration, Waited: c.Waited}
}

// OfChild implements ModelCall.
func (s Summary) OfChild(child int) ChildCall {
	c := Call(s).OfChild(child)
	c.Summary = true
	return c
}

// OfChild implements ModelCall.
func (c ChildCall) OfChild(int) ChildCall { return c }

// steps returns the number of steps that the call counts as.
func (c ChildCall) steps() int {
	if c.Summary {
		return 0
	}
	return 1
}

// MaxChildren bounds the number of child journals that ChildJournals returns.
const MaxChildren = 1000

// ChildJournals returns the paths of the journals of all children of an attempt,
// including children of children, by child number: at most MaxChildren. It returns nil if
// the name of the attempt's journal does not end with journal.jsonl, or if the folder of
// the children cannot be read.
func ChildJournals(journal string) map[int]string {
	stem, ok := strings.CutSuffix(filepath.Base(journal), ChildJournalName)
	if !ok {
		return nil
	}
	dir := filepath.Join(filepath.Dir(journal), stem+ChildrenFolderName)
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	found := map[int]string{}
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil || n < 1 || !e.IsDir() || strconv.Itoa(n) != e.Name() || len(found) >= MaxChildren {
			continue
		}
		path := filepath.Join(dir, e.Name(), ChildJournalName)
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			found[n] = path
		}
	}
	return found
}

// IsChildrenFolder reports whether dir is the folder of the children of an attempt
// whose journal is next to dir.
func IsChildrenFolder(dir string) bool {
	stem, ok := strings.CutSuffix(filepath.Base(dir), ChildrenFolderName)
	if !ok {
		return false
	}
	info, err := os.Lstat(filepath.Join(filepath.Dir(dir), stem+ChildJournalName))
	return err == nil && info.Mode()&fs.ModeType == 0
}

// ChildrenOf returns the children that the child with the given number started, sorted
// by number. Number 0 stands for the attempt itself.
func (a *Attempt) ChildrenOf(child int) []*Attempt {
	var children []*Attempt
	for _, c := range a.Children {
		if p := c.Header.Parent; p != nil && p.ParentChild == child && p.Child > child {
			children = append(children, c)
		}
	}
	slices.SortFunc(children, func(x, y *Attempt) int { return x.Header.Parent.Child - y.Header.Parent.Child })
	return children
}

// ChildrenByExecution returns the results of children by the record ID of the
// execution that started the child.
func (a *Attempt) ChildrenByExecution() map[int][]ChildResult {
	results := map[int][]ChildResult{}
	collect := func(executions []Execution) {
		for _, r := range executions {
			for _, c := range r.ToolCalls {
				results[r.Record] = append(results[r.Record], c.Children()...)
			}
		}
	}
	collect(a.SetupExecutions)
	for _, e := range a.Entries {
		collect(e.Executions)
	}
	return results
}

// ToolCall is a mini-tool request that a command made, and the response. It precedes the
// execution of the command. Details is data in a form that depends on the tool; it is
// not sent to the model.
type ToolCall struct {
	Name     string          `json:"name"`
	Args     []string        `json:"args,omitempty"` // without the name of the tool
	Input    Bytes           `json:"input,omitempty"`
	Dir      string          `json:"dir,omitempty"`
	Output   Bytes           `json:"output"`
	Errors   Bytes           `json:"errors,omitempty"`
	ExitCode int             `json:"returncode"`
	Start    time.Time       `json:"start"`
	Duration Seconds         `json:"duration"`
	Details  json.RawMessage `json:"details,omitempty"`
	// Record is the ID of the record. Attempt sets it.
	Record int `json:"-"`
}

// Children returns the results of the children that the tool call started.
func (c ToolCall) Children() []ChildResult {
	var details struct {
		Children []ChildResult `json:"children"`
	}
	if len(c.Details) == 0 || json.Unmarshal(c.Details, &details) != nil {
		return nil
	}
	return details.Children
}

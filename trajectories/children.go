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

// ChildJournal is the file name of a child's journal. ChildrenFolder is the folder
// with one folder per child. It is next to the parent's journal if that is named
// journal.jsonl; the children of NAME.journal.jsonl are in NAME.children.
const (
	ChildJournal   = "journal.jsonl"
	ChildrenFolder = "children"
)

// Parent describes the attempt that delegated a part of its task to a subagent, whose
// attempt is a child. InstanceID and Attempt in the header of the child are those of
// the parent.
type Parent struct {
	// Child numbers the children of an attempt from 1. Children of children are
	// numbered in the same sequence.
	Child int `json:"child"`
	// Journal is the path of the parent's journal relative to the child's folder;
	// empty if there is no file.
	Journal string `json:"journal,omitempty"`
	// Step is the model call of the parent that started the child. Depth is 1 for a
	// child of the attempt itself.
	Step  int `json:"step"`
	Depth int `json:"depth"`
	// ParentChild is the number of the child that started this one; 0 if the attempt
	// itself did. Journal always is the journal of the attempt itself.
	ParentChild int `json:"of,omitempty"`
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
	// Name is the name of the step, if the child is a step of a chain.
	Name string `json:"name,omitempty"`
	Task string `json:"task"`
	// Journal is the path of the child's journal relative to the folder of its
	// parent's, and SHA256 the file's checksum in hex. Both are empty if there is no
	// file.
	Journal string `json:"journal,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
	// Class and ExitStatus are from the child's outcome; Steps, Usage and Cost are
	// its totals.
	Class      Class       `json:"class"`
	ExitStatus string      `json:"exit_status"`
	Steps      int         `json:"steps"`
	Usage      model.Usage `json:"usage"`
	Cost       model.Cost  `json:"cost"`
	// Problem says why there is no usable report.
	Problem string `json:"problem,omitempty"`
}

// ChildCall is a model call by a child or its children. It counts as a step of the
// attempt and against its limits.
type ChildCall struct {
	Child int `json:"child"`
	// Summary is set for a call that summarized messages. It costs money, but is not
	// a step.
	Summary bool        `json:"summary,omitempty"`
	Usage   model.Usage `json:"usage"`
	Cost    model.Cost  `json:"cost"`
	Start   time.Time   `json:"start"`
	// Duration includes Waited, the time spent waiting for the provider.
	Duration Seconds `json:"duration"`
	Waited   Seconds `json:"waited,omitempty"`
}

// IsStep reports whether a record is a model call that counts as a step, of the
// attempt or of a child.
func IsStep(r Record) bool {
	switch r.Type {
	case TypeCall:
		return true
	case TypeChildCall:
		var s ChildCall
		return json.Unmarshal(r.Data, &s) == nil && !s.Summary
	}
	return false
}

// MaxChildren bounds the number of child journals that ChildJournals returns.
const MaxChildren = 1000

// ChildJournals returns the paths of the journals of all children of an attempt,
// including children of children, by number. It returns none if the journal does not
// have a name that mini uses.
func ChildJournals(journal string) map[int]string {
	stem, ok := strings.CutSuffix(filepath.Base(journal), ChildJournal)
	if !ok {
		return nil
	}
	dir := filepath.Join(filepath.Dir(journal), stem+ChildrenFolder)
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
		path := filepath.Join(dir, e.Name(), ChildJournal)
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			found[n] = path
		}
	}
	return found
}

// IsChildrenFolder reports whether dir has the children of an attempt whose journal
// is next to it.
func IsChildrenFolder(dir string) bool {
	stem, ok := strings.CutSuffix(filepath.Base(dir), ChildrenFolder)
	if !ok {
		return false
	}
	info, err := os.Lstat(filepath.Join(filepath.Dir(dir), stem+ChildJournal))
	return err == nil && info.Mode()&fs.ModeType == 0
}

// ChildrenOf returns the children of a child, sorted by number. Child 0 is the
// attempt itself.
func (t *Transcript) ChildrenOf(child int) []*Transcript {
	var children []*Transcript
	for _, c := range t.Children {
		if p := c.Header.Parent; p != nil && p.ParentChild == child && p.Child > child {
			children = append(children, c)
		}
	}
	slices.SortFunc(children, func(a, b *Transcript) int { return a.Header.Parent.Child - b.Header.Parent.Child })
	return children
}

// ChildrenByExecution returns the results of children by the record ID of the
// execution that started them.
func (t *Transcript) ChildrenByExecution() map[int][]ChildResult {
	results := map[int][]ChildResult{}
	collect := func(executions []RecordedExecution) {
		for _, r := range executions {
			for _, c := range r.ToolCalls {
				results[r.Record] = append(results[r.Record], c.Children()...)
			}
		}
	}
	collect(t.SetupExecutions)
	for _, e := range t.Entries {
		collect(e.Executions)
	}
	return results
}

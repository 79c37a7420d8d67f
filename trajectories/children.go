package trajectories

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ChildJournal is the name of a child's journal, in a folder of its own.
// ChildrenFolder is the name of the folder of all of them beside their parent's
// journal, where that is called journal.jsonl too; beside NAME.journal.jsonl it is
// NAME.children.
const (
	ChildJournal   = "journal.jsonl"
	ChildrenFolder = "children"
)

// IsStep says that a record is a call of a model that counts as a step: of the
// attempt's own, or of a child's.
func IsStep(r Record) bool {
	switch r.Type {
	case TypeCall:
		return true
	case TypeSpent:
		var s Spent
		return json.Unmarshal(r.Data, &s) == nil && !s.Summary
	}
	return false
}

// MaxChildren bounds how many journals of children are looked for.
const MaxChildren = 1000

// ChildJournals are the journals of the children of an attempt by their number,
// those of children's children among them. There are none where its journal is no
// file, or has another name than mini gives.
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

// HoldsChildren says that a folder is that of the children of an attempt, whose
// journal lies beside it.
func HoldsChildren(dir string) bool {
	stem, ok := strings.CutSuffix(filepath.Base(dir), ChildrenFolder)
	if !ok {
		return false
	}
	info, err := os.Lstat(filepath.Join(filepath.Dir(dir), stem+ChildJournal))
	return err == nil && info.Mode()&fs.ModeType == 0
}

// ChildrenOf are the children of a child, by its number; 0 is the attempt itself.
func (t *Transcript) ChildrenOf(child int) []*Transcript {
	var own []*Transcript
	for _, c := range t.Children {
		if p := c.Header.Parent; p != nil && p.Of == child && p.Child > child {
			own = append(own, c)
		}
	}
	slices.SortFunc(own, func(a, b *Transcript) int { return a.Header.Parent.Child - b.Header.Parent.Child })
	return own
}

// Asked are the calls of tools that made children, by the record of the execution
// that they were made within.
func (t *Transcript) Asked() map[int][]Child {
	asked := map[int][]Child{}
	add := func(ran []Ran) {
		for _, r := range ran {
			for _, c := range r.Tools {
				asked[r.Record] = append(asked[r.Record], c.Children()...)
			}
		}
	}
	add(t.Setup)
	for _, e := range t.Entries {
		add(e.Ran)
	}
	return asked
}

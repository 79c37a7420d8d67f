package inspect

import (
	"path/filepath"
	"strings"
)

// compare finds out whether what is listed is of several runs, or of several
// models: their columns are shown only then. Files that are in no run and have
// the same name, as all sessions have, are told apart by their folders.
func (l *list) compare() {
	runs, models, names := map[string]bool{}, map[string]bool{}, map[string]int{}
	for _, it := range l.items {
		if it.Run == "" {
			names[it.Name()]++
		}
	}
	l.above, l.alike = "", false
	for _, n := range names {
		l.alike = l.alike || n > 1
	}
	for _, it := range l.items {
		run := l.folderOf(it)
		runs[run], models[it.Model] = true, true
		if run != "" {
			l.above = common(l.above, filepath.Dir(run))
		}
	}
	l.several = map[Field]int{}
	for _, it := range l.items {
		if len(runs) > 1 {
			l.several[FieldRun] = max(l.several[FieldRun], widthOf(oneLine(l.runOf(it))))
		}
		if len(models) > 1 {
			l.several[FieldModel] = max(l.several[FieldModel], widthOf(oneLine(it.Model)))
		}
	}
}

// folderOf is the run of an item, or the folder that stands for one.
func (l *list) folderOf(it *Item) string {
	if it.Run == "" && l.alike {
		return filepath.Dir(it.Path)
	}
	return it.Run
}

// runOf is the run of an item, as the column names it.
func (l *list) runOf(it *Item) string {
	run := l.folderOf(it)
	if run == "" {
		return ""
	}
	if rel, err := filepath.Rel(l.above, run); err == nil {
		return rel
	}
	return run
}

func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// common is the folder that two are in; an empty one stands for any.
func common(a, b string) string {
	if a == "" {
		return b
	}
	for !within(a, b) && a != filepath.Dir(a) && !strings.HasPrefix(a, "..") {
		a = filepath.Dir(a)
	}
	return a
}

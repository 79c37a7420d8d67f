package inspect

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/verdicts"
)

// judged are the verdicts in the folder of a run, as they were read last.
type judged struct {
	sign string // changes when records are added or replaced
	byID map[string][]verdict
}

// verdict is what a list and a reader need of a record.
type verdict struct {
	class  verdicts.Class
	model  string
	sample int
	bytes  int    // of the patch
	sha256 string // of the patch
	flags  []string
	dir    string // of its log, below the run's folder
	reason string
	newest time.Time
}

func (s *Source) judged(dir string) *judged {
	if s.runs[dir] == nil {
		s.runs[dir] = &judged{}
	}
	return s.runs[dir]
}

// judge reads the verdicts again where there are other ones, and returns the
// items that they change.
func (s *Source) judge(dir string, items []*Item) []*Item {
	j := s.judged(dir)
	if sign := signOf(dir); sign != j.sign {
		found, err := verdicts.Read(dir)
		if err != nil {
			return nil
		}
		j.sign, j.byID = sign, map[string][]verdict{}
		for _, v := range found.Verdicts {
			if v.Model != evaluate.GoldModel && v.Model != evaluate.NoopModel {
				j.byID[v.Instance] = append(j.byID[v.Instance], verdictOf(v))
			}
		}
	}
	var changed []*Item
	for _, old := range items {
		it := *old
		it.Flags = slices.Clone(old.Flags)
		if j.judge([]*Item{&it}) {
			changed = append(changed, &it)
		}
	}
	return changed
}

// signOf is made of the times of the folders that records are in: replacing a
// record changes that of its folder.
func signOf(dir string) string {
	paths, _ := filepath.Glob(filepath.Join(quoted(dir), verdicts.Folder, "*", "*")) // quoted is no bad pattern
	var b strings.Builder
	for _, p := range paths {
		if info, err := os.Stat(p); err == nil {
			b.WriteString(p + info.ModTime().String() + "\n")
		}
	}
	return b.String()
}

// quoted makes a path a pattern that matches itself.
func quoted(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func verdictOf(v verdicts.Verdict) verdict {
	out := verdict{
		class: v.Class, model: v.Model, sample: max(1, v.Sample), bytes: v.Basis.PatchBytes, sha256: v.Basis.PatchSHA256, reason: v.Reason,
		flags: v.FlagNames(),
	}
	for _, run := range v.Runs {
		if run.Purpose == verdicts.ForVerdict {
			out.dir = run.Dir
		}
		if run.Start.After(out.newest) {
			out.newest = run.Start
		}
	}
	return out
}

// judge gives items their verdicts, and says whether any has changed. The patch
// itself is in the journal, which is not opened: its size tells an earlier one of
// the same sample, most of the time.
func (j *judged) judge(items []*Item) (changed bool) {
	for _, it := range items {
		v := j.on(it.ID, func(v verdict) bool {
			return it.State == Ended && it.Selected && v.sample == max(1, it.Sample) && v.bytes == it.patchBytes
		})
		if v == nil {
			continue
		}
		if it.Verdict != string(v.class) {
			it.Verdict, changed = string(v.class), true
		}
		for _, f := range v.flags {
			if !slices.Contains(it.Flags, f) {
				it.Flags, changed = append(it.Flags, f), true
			}
		}
	}
	return changed
}

// on is the newest verdict that fits.
func (j *judged) on(id string, fits func(verdict) bool) *verdict {
	var found *verdict
	for i, v := range j.byID[id] {
		if fits(v) && (found == nil || v.newest.After(found.newest)) {
			found = &j.byID[id][i]
		}
	}
	return found
}

// nameOf is a file as an instance is called.
func nameOf(path string) string {
	name := filepath.Base(path)
	for _, ending := range []string{".json", ".jsonl", ".traj", ".trajectory"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

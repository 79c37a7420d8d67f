package report

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/script"
	"github.com/minibench/mini/runner/grade/tampering"
)

// Hindsight compares the patches of attempts that are not resolved with the gold
// patches, which no agent saw. A patch may be right without touching the files of
// the gold patch.
type Hindsight struct {
	Note string `json:"note"`
	// Compared counts the attempts whose patch was compared. NotTouched counts those
	// that do not touch all files of the gold patch, and NoneTouched those that touch
	// none of them.
	Compared    int `json:"compared"`
	NotTouched  int `json:"files_not_touched"`
	NoneTouched int `json:"no_file_touched"`
}

const hindsightNote = "the agent never saw the gold patch"

// maxComparedPatch is the maximum size of a patch that is compared with the gold
// patch, in bytes.
const maxComparedPatch = 4 << 20

// IDsWithPatch returns the instances of the attempts that AddGold compares.
func (u *Unresolved) IDsWithPatch() map[string]bool {
	ids := map[string]bool{}
	for _, g := range u.Groups {
		for _, a := range g.Attempts {
			if a.files != "" {
				ids[a.ID] = true
			}
		}
	}
	return ids
}

// AddGold sets Hindsight, if it finds a patch to compare, and the GoldFiles of the attempts. gold has the gold
// patches by instance. It reads the patches from the folders of the test runs.
func (u *Unresolved) AddGold(gold map[string]string) error {
	root, err := rootdir.Open(u.dir)
	if err != nil {
		return fmt.Errorf("read patches: %w", err)
	}
	defer root.Close() //nolint:errcheck // only read
	h := Hindsight{Note: hindsightNote}
	for _, g := range u.Groups {
		for i, a := range g.Attempts {
			wanted := goldFiles(gold[a.ID])
			if a.files == "" || len(wanted) == 0 {
				continue
			}
			patch, err := root.ReadFile(grade.FilesIn(filepath.Join(u.dir, filepath.FromSlash(a.files))).Patch, maxComparedPatch)
			if err != nil {
				if !errors.Is(err, fs.ErrNotExist) {
					u.Unreadable = append(u.Unreadable, err.Error())
				}
				continue
			}
			touched := tampering.PatchFiles(patch)
			missed := slices.DeleteFunc(slices.Clone(wanted), func(f string) bool { return slices.Contains(touched, f) })
			h.Compared++
			switch len(missed) {
			case 0:
				continue
			case len(wanted):
				h.NoneTouched++
			}
			h.NotTouched++
			g.Attempts[i].GoldFiles = missed
		}
	}
	if h.Compared > 0 {
		u.Hindsight = &h
	}
	return nil
}

// goldFiles returns the files of a gold patch, without documents and names that git quotes.
func goldFiles(patch string) []string {
	changed, added := script.PatchFiles(patch)
	files := slices.Concat(changed, added)
	slices.Sort(files)
	return slices.DeleteFunc(slices.Compact(files), func(f string) bool { return strings.Contains(f, `"`) || isDocument(f) })
}

// isDocument reports whether a file is for readers, such as a changelog.
func isDocument(file string) bool {
	switch filepath.Ext(file) {
	case ".md", ".rst", ".txt", ".adoc":
		return true
	}
	return strings.HasPrefix(file, "doc/") || strings.HasPrefix(file, "docs/")
}

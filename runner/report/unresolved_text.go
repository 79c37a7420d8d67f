package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/internal/text"
)

// Limits of the text form. The JSON form has everything.
const (
	maxExamples       = 10 // attempts of a group; the table truncates the list
	maxHindsightFiles = 2  // files of an attempt
)

// add adds the groups.
func (u *Unresolved) add(d *doc.Doc) {
	left := u.Attempts - u.Resolved
	unit, limits := "instance", false
	if u.PerInstance > 1 {
		unit = "attempt"
	}
	for _, g := range u.Groups {
		limits = limits || g.AtLimit > 0
	}
	head := fmt.Sprintf("why %d of %s %s not resolved or %s no result", left, text.Count(u.Attempts, unit), text.Verb(left, "is", "are"), text.Verb(left, "has", "have"))
	if u.PerInstance > 1 {
		head += fmt.Sprintf(" (the attempts that count, up to %d per instance)", u.PerInstance)
	}
	rows, columns := [][]string{{"reason", unit + "s", "for example"}}, "srs"
	if limits {
		rows, columns = [][]string{{"reason", unit + "s", "at a limit", "for example"}}, "srrs"
	}
	for _, g := range u.Groups {
		row := []string{g.Title, fmt.Sprint(len(g.Attempts))}
		if limits {
			row = append(row, orDash(fmt.Sprint(g.AtLimit), g.AtLimit > 0))
		}
		var names []string
		for _, a := range g.Attempts[:min(maxExamples, len(g.Attempts))] {
			names = append(names, a.name())
		}
		rows = append(rows, append(row, strings.Join(names, ", ")))
	}
	d.Paragraph(head, 0, 2)
	d.Table(columns, rows)
	u.addRepositories(d)
	u.addHindsight(d)
}

// name returns the instance id, with the number of the repetition if there are
// several.
func (a UnresolvedAttempt) name() string {
	if a.Repetition > 0 {
		return fmt.Sprintf("%s#%d", a.ID, a.Repetition)
	}
	return a.ID
}

// addRepositories lists the repositories, if there are several, those with the most unresolved attempts
// first.
func (u *Unresolved) addRepositories(d *doc.Doc) {
	if len(u.Repositories) < 2 {
		return
	}
	repos := slices.DeleteFunc(slices.Clone(u.Repositories), func(r UnresolvedRepo) bool { return r.unresolved() == 0 })
	slices.SortStableFunc(repos, func(a, b UnresolvedRepo) int { return b.unresolved() - a.unresolved() })
	var items []string
	for _, r := range repos {
		items = append(items, fmt.Sprintf("%s %d of %d", r.Name, r.unresolved(), r.unresolved()+r.Resolved))
	}
	d.List("not resolved by repository", items, 2)
}

func (u *Unresolved) addHindsight(d *doc.Doc) {
	h := u.Hindsight
	if h == nil || h.NotTouched == 0 {
		return
	}
	head := fmt.Sprintf("in hindsight (%s): %d of %s %s not touch all files that it changes, %d %s none", h.Note, h.NotTouched,
		text.Count(h.Compared, "patch"), text.Verb(h.NotTouched, "does", "do"), h.NoneTouched, text.Verb(h.NoneTouched, "touches", "touch"))
	var items []string
	for _, g := range u.Groups {
		for _, a := range g.Attempts {
			if n := len(a.GoldFiles); n > 0 {
				files := strings.Join(a.GoldFiles[:min(n, maxHindsightFiles)], " ")
				if n > maxHindsightFiles {
					files += " ..."
				}
				items = append(items, fmt.Sprintf("%s (%s)", a.name(), files))
			}
		}
	}
	d.List(head, items, 4)
}

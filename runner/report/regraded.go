package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/minibench/mini/runner/regrade"
)

// maxChanges bounds the verdicts that are named one by one; the JSON has all.
const maxChanges = 20

// Regraded writes what became of verdicts that were given anew, and how the
// evaluations stand now. With dry nothing has been written yet.
func Regraded(w io.Writer, r regrade.Result, unread []string, scores []Score, dry bool, width int) error {
	var b strings.Builder
	rows := [][]string{}
	for i, c := range r.Changed {
		if i == maxChanges {
			break
		}
		rows = append(rows, []string{c.Instance + ":", words(string(c.From)) + " -> " + words(string(c.To)), c.Model})
	}
	b.WriteString(table(width, []column{{shrink: true, ids: true}, {}, {shrink: true}}, rows))
	if more := len(r.Changed) - maxChanges; more > 0 {
		fmt.Fprintf(&b, "... and %d more; --json has all\n", more)
	}
	for i, k := range r.Kept {
		if i == maxChanges {
			fmt.Fprintf(&b, "... and %d more stay as they were; --json has all\n", len(r.Kept)-i)
			break
		}
		b.WriteString(paragraph(fmt.Sprintf("%s stays %s: %s", k.Instance, words(string(k.Class)), k.Reason), width, 0, 3))
	}
	for i, text := range unread {
		if i == maxUnread {
			fmt.Fprintf(&b, "... and %d more that cannot be read; --json has all\n", len(unread)-i)
			break
		}
		b.WriteString(paragraph("cannot be read: "+text, width, 0, 2))
	}
	b.WriteString(paragraph(regradedText(r, dry), width, 0, 2))
	if n := len(scores); n > 0 {
		b.WriteString("\n")
		if err := scores[n-1].Write(&b, width); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func regradedText(r regrade.Result, dry bool) string {
	text := fmt.Sprintf("%d of %s changed", len(r.Changed), Count(r.Verdicts, "verdict"))
	if dry {
		text = fmt.Sprintf("%d of %s would change", len(r.Changed), Count(r.Verdicts, "verdict"))
	}
	if r.Renewed > 0 {
		text += fmt.Sprintf(", %d renewed as they were", r.Renewed)
	}
	if n := len(r.Kept); n > 0 {
		text += fmt.Sprintf(", %d could not be regraded", n)
	}
	return text
}

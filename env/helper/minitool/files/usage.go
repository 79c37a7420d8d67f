package files

import "strings"

// Spec says what a tool is, for whoever lists tools.
type Spec struct {
	Name string
	// Usage is what stands behind "mini-tool " on the command line; a line for
	// each form.
	Usage string
	// About says what it is good for.
	About string
	// More is told with the usage, and need not be known before.
	More string
}

// Specs are all there are: read, write and edit.
func Specs() []Spec {
	return []Spec{
		{
			Name:  "read",
			Usage: "read FILE [--offset N] [--limit N]",
			About: "prints lines of a text file with their numbers: 2000 from the first, or limit lines from line offset",
			More:  "Lines longer than 2000 characters are cut, and end in a note that says so.\n",
		},
		{
			Name:  "write",
			Usage: "write FILE TEXT\nwrite FILE - <<'EOF'",
			About: "writes a file, whole, and makes the folders it lies in; - takes the text from standard input",
			More:  "The text is written as it is, without a line end of its own.\n",
		},
		{
			Name:  "edit",
			Usage: "edit FILE --old TEXT --new TEXT [--all]\nedit FILE [--all] - <<'EOF'",
			About: "replaces text in a file; it must be there exactly once, or --all replaces each",
			More: `Standard input has one or more blocks of whole lines, each replaced in its turn:
  <<<<<<< OLD
  lines as they are
  =======
  lines as they are to be
  >>>>>>> NEW
The markers may have more than seven signs, all as many, where the text has such
lines itself. When one text is not found, nothing is changed.
`,
		},
	}
}

func find(name string) (Spec, bool) {
	for _, s := range Specs() {
		if s.Name == name {
			return s, true
		}
	}
	return Spec{}, false
}

// help is the usage as it is shown.
func (s Spec) help() string {
	var b strings.Builder
	before := "usage: mini-tool "
	for line := range strings.SplitSeq(s.Usage, "\n") {
		b.WriteString(before + line + "\n")
		before = "       mini-tool "
	}
	b.WriteString(s.More)
	return b.String()
}

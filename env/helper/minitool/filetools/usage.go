package filetools

import "strings"

// Spec describes a tool.
type Spec struct {
	Name string
	// Usage is the command line without "mini-tool "; one line for each form.
	Usage string
	// Summary says what the tool does, in a phrase.
	Summary string
	// Details is printed after the usage.
	Details string
}

// Specs returns the specifications of read, write and edit.
func Specs() []Spec {
	return []Spec{
		{
			Name:    "read",
			Usage:   "read FILE [--offset N] [--limit N]",
			Summary: "prints lines of a text file with their numbers: 2000 from the first, or limit lines from line offset",
			Details: "Lines longer than 2000 characters are cut, and end in a note that says so.\n",
		},
		{
			Name:    "write",
			Usage:   "write FILE TEXT\nwrite FILE - <<'EOF'",
			Summary: "writes a file, whole, and makes the folders it lies in; - takes the text from standard input",
			Details: "The text is written as it is, without a line end of its own.\n",
		},
		{
			Name:    "edit",
			Usage:   "edit FILE --old TEXT --new TEXT [--all]\nedit FILE [--all] - <<'EOF'",
			Summary: "replaces text in a file; it must be there exactly once, or --all replaces each",
			Details: `Standard input has one or more blocks of whole lines, each replaced in its turn:
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

func findSpec(name string) (Spec, bool) {
	for _, s := range Specs() {
		if s.Name == name {
			return s, true
		}
	}
	return Spec{}, false
}

// help returns the usage message.
func (s Spec) help() string {
	var b strings.Builder
	prefix := "usage: mini-tool "
	for line := range strings.SplitSeq(s.Usage, "\n") {
		b.WriteString(prefix + line + "\n")
		prefix = "       mini-tool "
	}
	b.WriteString(s.Details)
	return b.String()
}

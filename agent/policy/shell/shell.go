// Package shell analyzes the text of a shell command without running it: which
// programs the command would run, which files they would touch, and which of
// these facts are unknown until the command runs.
//
// Every simple command is a Part: commands in pipelines, lists, loops,
// functions, substitutions and here-documents for a shell, and commands that
// other programs run (env, sudo, xargs, find -exec, bash -c). Answers have
// three values (Tristate), because the text does not determine everything: in
// "$CMD x", the program is unknown.
//
// What a program does is read from the table in programs.txt. A program or an
// option that the table does not list, a variable that is not known to be
// harmless, and a construct that is not analyzed (functions, eval, alias) make a
// part undecided: it has an UndecidedReason.
//
// The analysis prevents accidents and is not a security boundary. A program
// that runs can do anything. The package does not look into scripts of Python
// or make.
package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/minibench/mini/internal/text"
)

// Tristate is the answer to a question that may be decidable only at run time.
type Tristate int8

// The answers, in the order of their strength.
const (
	No Tristate = iota
	Maybe
	Yes
)

// Not returns the negation.
func (a Tristate) Not() Tristate { return Yes - a }

// Or returns the stronger of two answers.
func (a Tristate) Or(b Tristate) Tristate { return max(a, b) }

// And returns the weaker of two answers.
func (a Tristate) And(b Tristate) Tristate { return min(a, b) }

func (a Tristate) String() string { return [...]string{"no", "maybe", "yes"}[a] }

// MarshalText implements encoding.TextMarshaler.
func (a Tristate) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// Location says whether a path is in the workspace.
type Location string

// The locations.
const (
	Inside  Location = "inside"
	Outside Location = "outside"
	Unknown Location = "unknown" // known only when the command runs
)

// Mode is how a program accesses a path.
type Mode string

// The modes.
const (
	Reads  Mode = "reads"
	Writes Mode = "writes" // creates, changes or deletes
	Uses   Mode = "uses"   // reads or writes: it is unknown which
)

// Path is a file or directory that a part names.
type Path struct {
	// Text is the path after expansion, made absolute if the working directory
	// is known. If the path is known only at run time, Text is the source text.
	// Text is clipped to maxShown characters.
	Text     string   `json:"path"`
	Mode     Mode     `json:"mode"`
	Location Location `json:"where"`

	git bool // it is, or is in, a directory of git's settings
}

// Word is an argument, clipped to maxShown characters. If the argument is not
// Known, Text is its source text, or a glob pattern for its values.
type Word struct {
	Text  string `json:"text"`
	Known bool   `json:"known"`
}

// Part is one simple command, at any nesting depth of the text.
type Part struct {
	// Program is the base name of the program. If the program is not Known,
	// Program is the source text. For a redirection without a program, Program
	// is empty.
	Program string `json:"program"`
	Known   bool   `json:"known"`
	Args    []Word `json:"arguments,omitempty"`
	// Via are the programs, or variables such as PAGER=, that run this program,
	// outermost first.
	Via   []string `json:"via,omitempty"`
	Paths []Path   `json:"paths,omitempty"`
	// PipesInto are the programs that read the part's output through a pipe,
	// directly or after other programs of the pipeline.
	PipesInto []string `json:"pipes_into,omitempty"`

	Network         Tristate `json:"network"`
	Sudo            Tristate `json:"sudo"`             // it runs as another user
	RecursiveDelete Tristate `json:"recursive_delete"` // it deletes files that are not named one by one
	System          Tristate `json:"system"`           // it changes the machine: services, disks, users, other programs' processes
	// UndecidedReason says why it is unknown what this part runs; empty if that
	// is known. The four answers above are then at least Maybe.
	UndecidedReason string `json:"undecided,omitempty"`
	// IsForkBomb says that the part defines a function that starts copies of
	// itself without end.
	IsForkBomb bool `json:"fork_bomb,omitempty"`
	// Start is the offset in bytes, in the analyzed text, of the command that
	// this part belongs to. Parts of a nested script have the offset of the
	// command that runs the script.
	Start int `json:"-"`

	byPath       bool // the program was called by a path
	unlisted     bool // the program is not in programs.txt
	pipesUnknown bool // the part pipes into a program whose name is unknown
	listing      bool // the program prints only names of files in the workspace
}

// IsUnlisted reports whether the part is undecided only because its program is
// not in the table of programs.
func (p *Part) IsUnlisted() bool { return p.unlisted }

// IsCalledByPath reports whether the program was called by a path. It may then
// be any program with this base name.
func (p *Part) IsCalledByPath() bool { return p.byPath }

// PipesIntoUnknownProgram reports whether the part pipes into a program whose
// name is unknown.
func (p *Part) PipesIntoUnknownProgram() bool { return p.pipesUnknown }

// Command returns Via, Program and Args, joined by spaces.
func (p *Part) Command() string {
	words := append([]string(nil), p.Via...)
	if p.Program != "" {
		words = append(words, p.Program)
	}
	for _, a := range p.Args {
		words = append(words, a.Text)
	}
	return strings.Join(words, " ")
}

// Workspace describes where a command would run.
type Workspace struct {
	// Dir is the absolute path of the workspace, where commands start. If it is
	// empty, the location of all paths except harmless devices is Unknown.
	Dir string
	// Home is the home directory of the user who runs commands; empty means
	// unknown.
	Home string
	// ExtraDirs are directories that count as part of the workspace.
	ExtraDirs []string
	// Resolve follows the symbolic links of an absolute path, as far as it
	// exists. ok is false if that fails. If Resolve is nil, paths are compared
	// as text.
	Resolve func(path string) (resolved string, ok bool)
}

// Bounds of the analysis. Beyond them, parts have an UndecidedReason and paths
// have an Unknown location.
const (
	// MaxText is the longest command that is analyzed, in bytes.
	MaxText = 256 << 10
	// maxNesting bounds the tokens that may open a nested construct, maxDepth
	// the depth of nested statements, programs and shells, and maxParts the parts
	// of a command.
	maxNesting = 16_000
	maxDepth   = 100
	maxParts   = 5_000
	// maxDirs bounds the directories that a command may run in, maxResolved the
	// paths passed to Workspace.Resolve, and maxPathElements the elements of a
	// path.
	maxDirs         = 8
	maxResolved     = 20_000
	maxPathElements = 500
	// maxShown bounds a text that is shown, in characters.
	maxShown = 120
)

// Analyze returns the parts of a command. The result is empty only if the text
// runs no program and opens no file.
func Analyze(text string, workspace Workspace) []Part {
	a := &analyzer{workspace: workspace.normalized(), listings: map[*syntax.CmdSubst]bool{}}
	s := &scope{names: map[string]bool{}}
	if a.workspace.Dir != "" {
		s.dirs = []string{a.workspace.Dir}
	}
	a.walkScript(text, s, cmdContext{topLevel: true})
	for i := range a.parts {
		p := &a.parts[i]
		if slices.ContainsFunc(p.Paths, func(q Path) bool {
			return q.git && (q.Mode != Reads || p.Program == "cp") && (p.Program != "git" || q.Mode == Writes)
		}) && p.Program != "rm" {
			p.UndecidedReason, p.unlisted = "it may change what git runs", false
		}
		if p.UndecidedReason != "" {
			p.Network, p.Sudo = p.Network.Or(Maybe), p.Sudo.Or(Maybe)
			p.RecursiveDelete, p.System = p.RecursiveDelete.Or(Maybe), p.System.Or(Maybe)
		}
	}
	return a.parts
}

// Programs returns the names of the programs that parts run, without
// duplicates.
func Programs(parts []Part) []string {
	var names []string
	seen := map[string]bool{}
	for _, p := range parts {
		if p.Program != "" && !seen[p.Program] {
			seen[p.Program] = true
			names = append(names, p.Program)
		}
	}
	return names
}

// shortened clips a text to maxShown characters.
func shortened(s string) string { return text.ClipRunes(s, maxShown) }

// Package shell reads the text of a command, without running anything: which
// programs it would run, what they would touch, and what of that no reader can
// tell.
//
// Every simple command is a Part: those in pipelines, lists, loops, functions,
// substitutions, here-documents given to a shell, and those that other programs
// are told to run (env, sudo, xargs, find -exec, bash -c). Answers have three
// values, since much is known only when the command runs: the program in "$CMD x"
// is known only when it runs.
//
// This is a reader for accidents, not a boundary. A program that is run can do
// anything; what python or make do with their files is not looked at.
package shell

import (
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Answer says whether something holds.
type Answer int8

// The answers, in the order of their strength.
const (
	No Answer = iota
	Maybe
	Yes
)

// Not is the answer to the opposite question.
func (a Answer) Not() Answer { return Yes - a }

// Or is the stronger of two answers.
func (a Answer) Or(b Answer) Answer { return max(a, b) }

// And is the weaker of two answers.
func (a Answer) And(b Answer) Answer { return min(a, b) }

func (a Answer) String() string { return [...]string{"no", "maybe", "yes"}[a] }

// MarshalText implements encoding.TextMarshaler.
func (a Answer) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// Where says on which side of the workspace's border a path is.
type Where string

// The sides.
const (
	Inside  Where = "inside"
	Outside Where = "outside"
	Unknown Where = "unknown" // it is known only when the command runs
)

// Mode is what a program does with a path.
type Mode string

// The modes.
const (
	Reads  Mode = "reads"
	Writes Mode = "writes" // makes, changes or deletes
	Uses   Mode = "uses"   // a program mini knows nothing of may do either
)

// Path is a file or folder that a part names.
type Path struct {
	// Text is the path as it is after expansion, made absolute where that can
	// be told; else as it was written.
	Text  string `json:"path"`
	Mode  Mode   `json:"mode"`
	Where Where  `json:"where"`
}

// Word is an argument. Of one that is not Known, Text is what was written.
type Word struct {
	Text  string `json:"text"`
	Known bool   `json:"known"`
}

// Part is one simple command, wherever in the text it stands.
type Part struct {
	// Program is the last element of the path it was called by; what was
	// written where that is not Known; "" for a redirection without a program.
	Program string   `json:"program"`
	Known   bool     `json:"known"`
	Args    []Word   `json:"arguments,omitempty"`
	Via     []string `json:"via,omitempty"` // the programs it is run by, outermost first
	Paths   []Path   `json:"paths,omitempty"`
	// PipesInto are the programs that what it prints is given to.
	PipesInto []string `json:"pipes_into,omitempty"`

	Network         Answer `json:"network"`
	Sudo            Answer `json:"sudo"`             // it gains another user's rights
	RecursiveDelete Answer `json:"recursive_delete"` // it deletes what it was not told one by one
	System          Answer `json:"system"`           // it changes the machine: services, disks, users, other programs' processes
	// Undecided says why nobody can tell what this part runs; empty where it can
	// be told.
	Undecided string `json:"undecided,omitempty"`
	// Start is where in the whole text the outermost command of this part
	// begins, in bytes.
	Start int `json:"-"`

	byPath       bool
	pipesUnknown bool
	dirs         []string // it may run in
	listing      bool     // prints names of files of the workspace and nothing else
}

// ByPath says that the program was called by a path, and may be any that lies
// there.
func (p *Part) ByPath() bool { return p.byPath }

// PipesIntoUnknown says that among the programs it pipes into is one that
// nobody can name.
func (p *Part) PipesIntoUnknown() bool { return p.pipesUnknown }

// Command is the part as one line, arguments as they are known.
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

// Place is where a command would run.
type Place struct {
	// Dir is the workspace, an absolute path; commands start there. Empty means
	// that no path can be told to be inside.
	Dir string
	// Home is the home of the user who runs commands; empty is unknown.
	Home string
	// Inside are further folders that count as the workspace.
	Inside []string
	// Resolve follows the symbolic links of an absolute path, as far as it
	// exists; nil goes by the text alone. ok is false where it cannot tell.
	Resolve func(path string) (resolved string, ok bool)
}

// Bounds of what is read; beyond them nothing is decided.
const (
	// MaxText is the longest command that is read, in bytes.
	MaxText = 256 << 10
	// maxOpeners bounds what can nest, maxDepth how deep statements do, maxParts
	// the parts of a command, and maxPipe those of a pipeline.
	maxOpeners = 16_000
	maxDepth   = 100
	maxParts   = 5_000
	maxPipe    = 100
	// maxNested bounds shells in shells, maxScripts the bytes of all scripts.
	maxNested  = 8
	maxScripts = 1 << 20
	// maxFields bounds what braces make of a word, maxWords the words of all
	// commands, maxDirs how many folders a command may be in, maxResolved the
	// paths that the file system is asked about, and maxNames the names in one.
	maxFields   = 256
	maxWords    = 100_000
	maxDirs     = 8
	maxResolved = 2_000
	maxNames    = 500
	// maxShown bounds a text that is shown, in characters.
	maxShown = 120
)

// Read finds the parts of a command. There is always at least one, but for a
// text that runs nothing.
func Read(text string, at Place) []Part {
	r := &reader{at: at.clean(), work: &work{prints: map[*syntax.CmdSubst]bool{}}}
	r.at.Resolve = remembered(r.at.Resolve)
	s := &scope{vars: map[string]value{}}
	if r.at.Dir != "" {
		s.dirs = []string{r.at.Dir}
	}
	r.script(text, s, &context{start: 0, top: true})
	return r.parts
}

// Programs are the names of all programs that parts run, each once.
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

// undecided is a part of which nothing can be told.
func undecided(c *context, text, format string, args ...any) Part {
	return Part{
		Program: shorten(text), Via: c.via, Start: c.start, Undecided: fmt.Sprintf(format, args...),
		Network: Maybe, Sudo: Maybe, RecursiveDelete: Maybe, System: Maybe,
	}
}

// shorten bounds a text that is shown.
func shorten(text string) string {
	if runes := []rune(text); len(runes) > maxShown {
		return string(runes[:maxShown]) + "..."
	}
	return text
}

package shell

import (
	_ "embed"
	"path"
	"strings"
	"sync"
)

// program describes the options and effects of a program, from programs.txt.
type program struct {
	operands        Mode // how it accesses its operands; "" means Uses
	noPaths         bool // no operand is a path
	lastWritten     bool // it writes to the last of several operands
	skipFirst       bool // the first operand is not a path, unless an option in skipUnless is given
	skipUnless      []string
	valueOptions    []string        // options whose value is not a path
	attachedOptions string          // letters of short options whose optional value is attached
	files           map[string]Mode // options whose value is a file
	network         Tristate
	system          Tristate
	sudo            Tristate
	networkCommands []string // subcommands that use the network
	runsAlways      bool     // it runs code that is not analyzed
	runsWith        []string // options with which it runs such code
	deletesWith     []string // options with which it deletes files that are not named one by one
	inPlaceWith     []string // options with which it writes to the files that it reads
	runsOperands    bool     // it may run operands that begin with a program name
	listsFiles      bool     // it prints only file names if its input is file names
	scriptLanguage  string   // language of the script in its arguments; see scriptMayRun
}

//go:embed programs.txt
var programsText string

// programs returns the content of programs.txt, by program name.
var programs = sync.OnceValue(func() map[string]program {
	all := map[string]program{}
	for line := range strings.Lines(programsText) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndex(line, ": ")
		p := readProgram(strings.Fields(line[at+1:]))
		for _, name := range strings.Fields(line[:at]) {
			all[name] = p
		}
	}
	return all
})

func readProgram(attributes []string) program {
	p := program{files: map[string]Mode{}}
	for _, attribute := range attributes {
		key, text, hasValue := strings.Cut(attribute, "=")
		var list []string
		if hasValue {
			list = strings.Split(text, ",")
		}
		switch key {
		case "reads":
			p.operands = Reads
		case "writes":
			p.operands = Writes
		case "text":
			p.noPaths = true
		case "last-written":
			p.lastWritten = true
		case "skip":
			p.skipFirst, p.skipUnless = true, list
		case "values":
			p.valueOptions = list
		case "attached":
			p.attachedOptions = text
		case "in", "out":
			for _, name := range list {
				p.files[name] = map[string]Mode{"in": Reads, "out": Writes}[key]
			}
		case "network":
			p.network = Yes
		case "system":
			p.system = Yes
		case "sudo":
			p.sudo = Yes
		case "remote":
			for _, name := range list {
				p.networkCommands = append(p.networkCommands, strings.TrimSuffix(strings.ReplaceAll(name, "+", " "), "-"))
			}
		case "runs":
			p.runsAlways, p.runsWith = !hasValue, list
		case "deletes":
			p.deletesWith = list
		case "in-place":
			p.inPlaceWith = list
		case "carries":
			p.runsOperands = true
		case "lists":
			p.listsFiles = true
		case "script":
			p.scriptLanguage = text
		default:
			panic("shell: unknown attribute in programs.txt: " + key)
		}
	}
	return p
}

// tableName returns the name in programs.txt for a program: python for
// python3.11, mkfs for mkfs.ext4, and sed for gsed (GNU sed on other systems).
// For a program that is not in the file, it returns the base name without a
// version.
func tableName(name string) string {
	name = path.Base(name)
	if _, ok := programs()[name]; ok {
		return name
	}
	if strings.HasPrefix(name, "mkfs.") {
		return "mkfs"
	}
	name = strings.TrimRight(strings.TrimRight(name, "0123456789."), "-")
	if rest, ok := strings.CutPrefix(name, "g"); ok && programs()[name].files == nil && programs()[rest].files != nil {
		return rest
	}
	return name
}

// removers are programs that delete their operands.
var removers = []string{"rm", "unlink", "shred", "rmdir"}

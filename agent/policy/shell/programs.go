package shell

import (
	_ "embed"
	"path"
	"strings"
	"sync"
)

// program describes a program's options and effects; see programs.txt.
type program struct {
	operands        Mode // how it accesses its operands; "" is Uses
	noPaths         bool
	lastWritten     bool
	skip            bool
	skipUnless      []string
	values          []string
	attached        string
	files           map[string]Mode // options whose value is a file
	network         Tristate
	system          Tristate
	sudo            Tristate
	networkCommands []string
	runsAlways      bool
	runsWith        []string
	deletesWith     []string
	inPlaceWith     []string
	runsOperands    bool
	listsFiles      bool
	script          string
}

//go:embed programs.txt
var programsText string

// programs is the content of programs.txt, by name.
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
		key, text, given := strings.Cut(attribute, "=")
		var list []string
		if given {
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
			p.skip, p.skipUnless = true, list
		case "values":
			p.values = list
		case "attached":
			p.attached = text
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
			p.runsAlways, p.runsWith = !given, list
		case "deletes":
			p.deletesWith = list
		case "in-place":
			p.inPlaceWith = list
		case "carries":
			p.runsOperands = true
		case "lists":
			p.listsFiles = true
		case "script":
			p.script = text
		default:
			panic("shell: unknown attribute in programs.txt: " + key)
		}
	}
	return p
}

// tableName returns the name of a program in programs.txt: python3.11 is
// python, and gsed (GNU sed on other systems) is sed.
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

package shell

import (
	_ "embed"
	"path"
	"strings"
	"sync"
)

// program says what the reader knows of one; see programs.txt.
type program struct {
	operands    Mode // what it does with them; "" is Uses
	text        bool
	lastWritten bool
	skip        bool
	instead     []string
	values      []string
	attached    string
	files       map[string]Mode // options whose value is a file
	network     Answer
	system      Answer
	sudo        Answer
	remote      []string
	runs        bool
	runsWith    []string
	deletesWith []string
	inPlaceWith []string
	carries     bool
	lists       bool
	script      string
}

//go:embed programs.txt
var programsText string

// programs are those of programs.txt, by name.
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
			p.text = true
		case "last-written":
			p.lastWritten = true
		case "skip":
			p.skip, p.instead = true, list
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
				p.remote = append(p.remote, strings.TrimSuffix(strings.ReplaceAll(name, "+", " "), "-"))
			}
		case "runs":
			p.runs, p.runsWith = !given, list
		case "deletes":
			p.deletesWith = list
		case "in-place":
			p.inPlaceWith = list
		case "carries":
			p.carries = true
		case "lists":
			p.lists = true
		case "script":
			p.script = text
		default:
			panic("shell: unknown attribute in programs.txt: " + key)
		}
	}
	return p
}

// baseOf is the name by which a program is in the table: python3.11 is python, and
// gsed, as GNU's is called elsewhere, sed.
func baseOf(name string) string {
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

// removers are programs that delete what they are given.
var removers = []string{"rm", "unlink", "shred", "rmdir"}

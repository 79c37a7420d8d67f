package shell

import (
	"path"
	"slices"
	"strings"
)

// copies is about host:path.
func (r *reader) copies(p *Part, a arguments) {
	for name := range a.flags {
		if strings.HasPrefix(name, "del") || name == "remove-source-files" {
			p.RecursiveDelete = Yes
		}
	}
	for name := range a.flags {
		if strings.HasPrefix(name, "rsh") || name == "e" && strings.HasPrefix(p.Program, "rsync") {
			p.Network = Yes
		}
		if name == "daemon" {
			p.Network = Yes
		}
	}
	for _, v := range a.operands {
		host, _, remote := strings.Cut(v.text, ":")
		if remote && host != "" && !strings.Contains(host, "/") {
			p.Network = Yes
			p.Paths = slices.DeleteFunc(p.Paths, func(q Path) bool { return strings.HasSuffix(q.Text, path.Clean("/" + v.text)[1:]) })
		}
	}
}

func (r *reader) dd(p *Part, args []value, s *scope) {
	p.Paths = nil
	for _, v := range args {
		key, text, _ := strings.Cut(v.text, "=")
		file := value{text: text, kind: v.kind}
		switch key {
		case "of":
			p.Paths = append(p.Paths, r.located(file, Writes, s.dirs))
			if strings.HasPrefix(text, "/dev/") && r.at.where(path.Clean(text), false) != Inside {
				p.System = Yes
			}
		case "if":
			p.Paths = append(p.Paths, r.located(file, Reads, s.dirs))
		default:
			if v.kind == unknown && !strings.Contains(v.text, "=") {
				p.Paths = append(p.Paths, r.located(v, Writes, s.dirs))
			}
		}
	}
}

// tar may be told to run something, to go where the archive says, and to delete
// what it packs.
func (r *reader) tar(p *Part, a arguments) {
	runs := []string{"to-command", "checkpoint-action", "use-compress-program", "info-script", "new-volume-script", "rsh-command", "rmt-command"}
	if slices.ContainsFunc(runs, func(name string) bool { return a.flag(name) == Yes }) || a.flags["I"] || a.flags["F"] {
		p.Undecided = "tar runs a command that is not read"
	}
	if a.flags["P"] || a.flag("absolute-names") == Yes {
		p.Paths = append(p.Paths, Path{Text: "wherever the archive says", Mode: Uses, Where: Unknown})
	}
	if a.flag("remove-files") == Yes || a.flag("recursive-unlink") == Yes {
		p.RecursiveDelete = Yes
	}
}

// unzips says that zip tests with a program of its own.
func (a arguments) unzips() bool { return a.flags["TT"] || a.flag("unzip-command") == Yes }

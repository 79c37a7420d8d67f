package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// toolScripts are the texts that sed or awk run: the first operand, or the values
// of options.
func toolScripts(known program, args []value) (scripts []value) {
	options := false
	for i := 0; i < len(args); i++ {
		v := args[i]
		switch {
		case v.text == "--" && v.literal():
			if !options && i+1 < len(args) {
				scripts = append(scripts, args[i+1])
			}
			return scripts
		case strings.HasPrefix(v.text, "--"):
			name, text, has := strings.Cut(v.text[2:], "=")
			code := name != "" && (strings.HasPrefix("expression", name) || strings.HasPrefix("source", name))
			switch {
			case code && has:
				scripts, options = append(scripts, value{text: text, kind: v.kind}), true
			case code && i+1 < len(args):
				i++
				scripts, options = append(scripts, args[i]), true
			case strings.HasPrefix("file", name):
				options = true
				fallthrough
			case slices.Contains(known.words, name):
				if !has {
					i++
				}
			}
		case len(v.text) > 1 && v.text[0] == '-':
			for at := 1; at < len(v.text); at++ {
				c, rest := v.text[at], v.text[at+1:]
				if !strings.ContainsRune("ef"+known.values, rune(c)) || c == 'i' {
					if c == 'i' {
						break // the rest is the ending of copies
					}
					continue
				}
				val := value{text: rest, kind: v.kind}
				if rest == "" && i+1 < len(args) {
					i++
					val = args[i]
				}
				if c == 'e' {
					scripts = append(scripts, val)
				}
				options = options || c == 'e' || c == 'f'
				break
			}
		default:
			if !options {
				return append(scripts, v)
			}
		}
	}
	return scripts
}

// sedScript is about the commands of sed that run, read and write.
func (r *reader) sedScript(p *Part, text string, s *scope) {
	file := func(name string, mode Mode) {
		if name = strings.TrimSpace(name); name != "" {
			p.Paths = append(p.Paths, r.located(value{text: name}, mode, s.dirs))
		}
	}
	for text = strings.TrimLeft(text, " \t\n;{}"); text != ""; text = strings.TrimLeft(text, " \t\n;{}") {
		text = skipAddresses(text)
		if text == "" {
			return
		}
		c := text[0]
		text = text[1:]
		line, after, _ := strings.Cut(text, "\n")
		switch c {
		case 'e':
			p.Undecided = "sed runs a command that is not read"
			return
		case 'w', 'W':
			file(line, Writes)
			text = after
		case 'r', 'R':
			file(line, Reads)
			text = after
		case 'a', 'i', 'c':
			for strings.HasSuffix(line, "\\") { // a text goes on
				line, after, _ = strings.Cut(after, "\n")
			}
			text = after
		case '#', ':':
			text = after
		case 's', 'y':
			if text == "" {
				return
			}
			by := text[0]
			text = behind(behind(text[1:], by, c == 's'), by, false)
			for text != "" && strings.IndexByte("gpiImMe0123456789", text[0]) >= 0 {
				if text[0] == 'e' && c == 's' {
					p.Undecided = "sed runs what it makes"
					return
				}
				text = text[1:]
			}
			if strings.HasPrefix(text, "w") {
				line, after, _ := strings.Cut(text[1:], "\n")
				file(line, Writes)
				text = after
			}
		default: // takes nothing, a number, or a label
			text = strings.TrimLeft(text, " \t0123456789")
			if c == 'b' || c == 't' || c == 'T' {
				if at := strings.IndexAny(text, ";\n}"); at >= 0 {
					text = text[at:]
				} else {
					return
				}
			}
		}
	}
}

// behind is what follows the next unescaped delimiter; in a pattern, one in
// brackets is none.
func behind(text string, by byte, pattern bool) string {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			if from := min(i+2, len(text)); pattern {
				if end := strings.IndexByte(text[from:], ']'); end >= 0 {
					i = from + end
				}
			}
		case by:
			return text[i+1:]
		}
	}
	return ""
}

// skipAddresses takes the lines that a command of sed is for from its front.
func skipAddresses(text string) string {
	for {
		text = strings.TrimLeft(text, " \t,!0123456789$~+")
		switch {
		case strings.HasPrefix(text, "/"):
			text = strings.TrimLeft(behind(text[1:], '/', true), "IM")
		case len(text) > 1 && text[0] == '\\':
			text = strings.TrimLeft(behind(text[2:], text[1], true), "IM")
		default:
			return text
		}
	}
}

var (
	// awkQuiet are strings and patterns of awk, in which nothing is run.
	awkQuiet = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"|(^|[({,;!~&|\n])(\s*)/(?:[^/\\\n[]|\\.|\[[^]\n]*\])+/`)
	awkRuns  = regexp.MustCompile(`\bsystem\s*\(|(?:^|[^|])\|(?:$|[^|])|\|&|@(load|include)\b|@[A-Za-z_]`)
	awkFiles = regexp.MustCompile(`\bgetline\b[^;}\n]*<|\bprintf?\b[^;}\n]*>`)
	awkFile  = regexp.MustCompile(`[<>]\s*\(?\s*"((?:[^"\\\n]|\\.)*)"`)
)

// awkScript is about what awk runs, and the files that it names itself.
func (r *reader) awkScript(p *Part, text string, s *scope) {
	bare := awkQuiet.ReplaceAllString(text, `${1}${2}""`)
	switch {
	case awkRuns.MatchString(bare):
		p.Undecided = "awk runs a command that is not read"
	case strings.Contains(text, `"/inet`):
		p.Network = Yes
	case awkFiles.MatchString(bare):
		names := awkFile.FindAllStringSubmatch(text, -1)
		if len(names) == 0 && !strings.Contains(bare, "(") {
			p.Paths = append(p.Paths, Path{Text: "a file that awk names", Mode: Uses, Where: Unknown})
		}
		for _, name := range names {
			p.Paths = append(p.Paths, r.located(value{text: name[1]}, Uses, s.dirs))
		}
	}
}

// scripts reads the texts given to sed or awk.
func (r *reader) scripts(p *Part, name string, args []value, s *scope) {
	for _, v := range toolScripts(programs[name], args) {
		switch {
		case name == "sed":
			if v.kind == unknown { // as "s/$old/$new/", which is ordinary
				v.text = insertions.ReplaceAllString(strings.Trim(v.text, `"`), "1")
			}
			r.sedScript(p, v.text, s)
		case v.kind == unknown:
		default:
			r.awkScript(p, v.text, s)
		}
	}
}

// insertions are what a shell puts into a text.
var insertions = regexp.MustCompile(`\$\([^()]*\)|\$\{[^{}]*\}|\$[A-Za-z0-9_@]+`)

// telling are programs that are looked for among the arguments of one that mini
// knows nothing of: chances are that it runs them.
var telling = []string{
	"rm", "sudo", "doas", "su", "curl", "wget", "ssh", "scp", "rsync", "dd", "mkfs", "shred", "bash", "sh", "zsh", "dash", "env", "xargs",
	"find", "git", "pip", "npm", "docker", "chmod", "chown", "nc", "kill", "killall", "pkill",
}

// carried reads what a program mini knows nothing of may run: words from the
// name of a telling program on, or a text that begins with one.
func (r *reader) carried(p *Part, args []value, s *scope, c *context) {
	if len(c.via) > maxNested {
		return
	}
	inner := c.within(p.Program)
	inner.stdin, inner.input = nothing, ""
	for i, v := range args {
		if !v.literal() {
			continue
		}
		if slices.Contains(telling, path.Base(v.text)) && i+1 < len(args) {
			r.run(args[i:], s, inner)
			return
		}
		text := strings.TrimLeft(v.text, ":!+ ")
		first, rest, many := strings.Cut(text, " ")
		if many && strings.TrimSpace(rest) != "" && slices.Contains(telling, path.Base(first)) {
			r.nested(text, s, inner)
		}
	}
}

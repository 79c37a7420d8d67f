package markup

import "strings"

// Prose renders a reply. Blocks between fences (``` or ~~~) are in <pre>, code between backquotes
// of a line in <code>; the fences and backquotes stay. All other marks of Markdown, such as links
// and images, are text.
func Prose(s string, o Options) Block {
	w := newWriter(o)
	fence := "" // the open one
	w.parts(s, o.limit(), func(part string) {
		for line := range strings.Lines(part) {
			line, end := cutEnd(line)
			isFence := false
			switch run, info := fenceOf(line); {
			case fence == "" && run != "" && (run[0] == '~' || !strings.Contains(info, "`")):
				fence, isFence = run, true
			case fence != "" && strings.HasPrefix(run, fence) && strings.TrimSpace(info) == "":
				w.line(line, fenceStyle, preTag, end)
				fence = ""
				continue
			}
			switch {
			case isFence:
				w.line(line, fenceStyle, preTag, end)
			case fence != "":
				w.line(line, nil, preTag, end)
			default:
				w.line(line, inlineCode(line[:min(len(line), MaxLine)]), "", end)
			}
		}
	})
	return w.block()
}

var fenceStyle = []style{{0, spanTag("fence")}}

// fenceOf returns the three or more signs of a fence, and the text after them; "" if the line is
// no fence.
func fenceOf(line string) (run, info string) {
	line = strings.TrimLeft(line, " \t")
	if !strings.HasPrefix(line, "```") && !strings.HasPrefix(line, "~~~") {
		return "", ""
	}
	info = strings.TrimLeft(line, line[:1])
	return line[:len(line)-len(info)], info
}

// inlineCode returns the styles of a line with code between runs of backquotes of equal length.
func inlineCode(line string) (styles []style) {
	type run struct{ start, end, next int } // next is the index of the next run of the same length
	var runs []run
	for i := 0; i < len(line); {
		j := strings.IndexByte(line[i:], '`')
		if j < 0 {
			break
		}
		start := i + j
		for i = start; i < len(line) && line[i] == '`'; i++ {
		}
		runs = append(runs, run{start, i, -1})
	}
	later := map[int]int{} // length -> index
	for i := len(runs) - 1; i >= 0; i-- {
		n := runs[i].end - runs[i].start
		if next, found := later[n]; found {
			runs[i].next = next
		}
		later[n] = i
	}
	for i := 0; i < len(runs); i++ {
		if next := runs[i].next; next >= 0 {
			styles = append(styles, style{runs[i].start, codeTag}, style{runs[next].end, ""})
			i = next
		}
	}
	return styles
}

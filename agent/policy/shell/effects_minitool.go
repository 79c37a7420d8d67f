package shell

import "strings"

// miniTool is the program by which commands ask mini itself for something.
const miniTool = "mini-tool"

// asked says what a call of mini-tool does with which of its arguments: its file
// tools read and write, a chain is read from a file, and what the others are
// given are words. Where the tool is not known, nothing is.
func asked(args []value) (program, []value) {
	if len(args) == 0 || !args[0].literal() {
		return program{}, args
	}
	rest := args[1:]
	switch args[0].text {
	case "read", "chain":
		return program{operands: Reads, words: []string{"offset", "limit"}}, rest
	case "write", "edit": // a file; then texts
		for i, v := range rest {
			if v.kind == unknown || !strings.HasPrefix(v.text, "-") {
				return writer, rest[i : i+1]
			}
		}
		return writer, nil
	}
	return speaker, rest
}

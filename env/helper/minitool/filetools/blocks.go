package filetools

import "bytes"

// The characters of the marker lines of a block, and their minimum number.
const (
	openMarker      = '<'
	middleMarker    = '='
	closeMarker     = '>'
	minMarkerLength = 7
)

// parseBlocks parses a text that consists of blocks like merge conflicts, and returns
// their changes:
//
//	<<<<<<< OLD
//	...
//	=======
//	...
//	>>>>>>> NEW
//
// A space and any text may follow the first and the last marker. Between blocks there
// may be blank lines.
func parseBlocks(text []byte) ([]change, error) {
	lines := bytes.SplitAfter(text, []byte("\n"))
	var all []change
	for i := 0; i < len(lines); {
		if len(bytes.TrimSpace(lines[i])) == 0 {
			i++
			continue
		}
		length := markerLength(lines[i], openMarker)
		if length == 0 {
			return nil, usagef("line %d of standard input begins no block: %s", i+1, quoted(clipped(string(bytes.TrimSpace(lines[i])))))
		}
		c, next, err := parseBlock(lines, i+1, length)
		if err != nil {
			return nil, err
		}
		c.block = len(all) + 1
		all = append(all, c)
		i = next
	}
	if len(all) == 0 {
		return nil, usagef("standard input has no block")
	}
	if len(all) == 1 {
		all[0].block = 0
	}
	for _, c := range all {
		if err := c.validate(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// parseBlock parses one block, starting after its first line. next is the index of the
// line after the block.
func parseBlock(lines [][]byte, from, length int) (c change, next int, err error) {
	middle := -1
	for i := from; i < len(lines); i++ {
		switch {
		case markerLength(lines[i], middleMarker) == length && len(bytes.TrimSpace(lines[i])) == length:
			if middle >= 0 {
				return c, 0, usagef("lines %d and %d of standard input both could be the one between old and new; give the markers of that block more signs, all as many",
					middle+1, i+1)
			}
			middle = i
		case markerLength(lines[i], openMarker) == length:
			return c, 0, usagef("line %d of standard input begins a block before the one of line %d has ended", i+1, from)
		case markerLength(lines[i], closeMarker) == length && middle < 0:
			return c, 0, usagef("the block of line %d of standard input has no line of %d = signs", from, length)
		case markerLength(lines[i], closeMarker) == length:
			c = change{lines: true, old: bytes.Join(lines[from:middle], nil), new: bytes.Join(lines[middle+1:i], nil)}
			return c, i + 1, nil
		}
	}
	return c, 0, usagef("the block of line %d of standard input has no end, a line of %d > signs", from, length)
}

// markerLength returns the number of marker characters at the beginning of a line; 0 if
// the line is no marker. A space or the line end must follow them.
func markerLength(line []byte, sign byte) int {
	n := 0
	for n < len(line) && line[n] == sign {
		n++
	}
	rest := bytes.TrimRight(line[n:], "\r\n")
	if n < minMarkerLength || len(rest) > 0 && rest[0] != ' ' {
		return 0
	}
	return n
}

package files

import "bytes"

// The signs of the lines around the texts of a block, and how many there are at
// the least.
const (
	openSign   = '<'
	middleSign = '='
	closeSign  = '>'
	leastSigns = 7
)

// blocks reads the changes of a text with blocks:
//
//	<<<<<<< OLD
//	...
//	=======
//	...
//	>>>>>>> NEW
//
// The words behind the signs may be others, or none. Between blocks there may be
// empty lines.
func blocks(text []byte) ([]change, error) {
	lines := bytes.SplitAfter(text, []byte("\n"))
	var all []change
	for i := 0; i < len(lines); {
		if len(bytes.TrimSpace(lines[i])) == 0 {
			i++
			continue
		}
		signs := marks(lines[i], openSign)
		if signs == 0 {
			return nil, usagef("line %d of standard input begins no block: %s", i+1, quoted(clipped(string(bytes.TrimSpace(lines[i])))))
		}
		c, next, err := block(lines, i+1, signs)
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
		if err := c.check(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// block reads one from behind its first line.
func block(lines [][]byte, from, signs int) (c change, next int, err error) {
	middle := -1
	for i := from; i < len(lines); i++ {
		switch {
		case marks(lines[i], middleSign) == signs && len(bytes.TrimSpace(lines[i])) == signs:
			if middle >= 0 {
				return c, 0, usagef("lines %d and %d of standard input both could be the one between old and new; give the markers of that block more signs, all as many",
					middle+1, i+1)
			}
			middle = i
		case marks(lines[i], openSign) == signs:
			return c, 0, usagef("line %d of standard input begins a block before the one of line %d has ended", i+1, from)
		case marks(lines[i], closeSign) == signs && middle < 0:
			return c, 0, usagef("the block of line %d of standard input has no line of %d = signs", from, signs)
		case marks(lines[i], closeSign) == signs:
			c = change{lines: true, old: bytes.Join(lines[from:middle], nil), new: bytes.Join(lines[middle+1:i], nil)}
			return c, i + 1, nil
		}
	}
	return c, 0, usagef("the block of line %d of standard input has no end, a line of %d > signs", from, signs)
}

// marks is how many signs a line begins with, where it is a marker: alone, or
// before a space; 0 where it is none.
func marks(line []byte, sign byte) int {
	n := 0
	for n < len(line) && line[n] == sign {
		n++
	}
	rest := bytes.TrimRight(line[n:], "\r\n")
	if n < leastSigns || len(rest) > 0 && rest[0] != ' ' {
		return 0
	}
	return n
}

package replay

import (
	"bytes"
	"slices"
)

// maxNested bounds how deep braces within braces are sorted.
const maxNested = 8

// sortMembers puts what stands between braces in order, as programs print sets
// and maps: {'b', 'a'} is {'a', 'b'}. Quotes are not looked at: a comma within
// them parts a member too, alike on both sides.
func sortMembers(line []byte) []byte {
	if bytes.IndexByte(line, '{') < 0 || bytes.IndexByte(line, ',') < 0 {
		return line
	}
	type frame struct {
		members [][]byte
		start   int // of the current member, in out
	}
	var stack []frame
	out := make([]byte, 0, len(line))
	deeper := 0 // braces beyond the bound
	for _, b := range line {
		top := len(stack) - 1
		switch {
		case b == '{' && len(stack) == maxNested:
			deeper++
		case b == '}' && deeper > 0:
			deeper--
		case b == '{':
			out = append(out, b)
			stack = append(stack, frame{start: len(out)})
			continue
		case b == ',' && top >= 0 && deeper == 0:
			f := &stack[top]
			f.members = append(f.members, bytes.TrimSpace(slices.Clone(out[f.start:])))
			out = out[:f.start]
			continue
		case b == '}' && top >= 0:
			f := stack[top]
			stack = stack[:top]
			members := append(f.members, bytes.TrimSpace(slices.Clone(out[f.start:])))
			slices.SortFunc(members, bytes.Compare)
			out = append(out[:f.start], bytes.Join(members, []byte(", "))...)
		}
		out = append(out, b)
	}
	// A brace that is never closed holds no set: its text goes back as it was.
	for i := len(stack) - 1; i >= 0; i-- {
		f := stack[i]
		if len(f.members) > 0 {
			tail := slices.Clone(out[f.start:])
			out = append(append(append(out[:f.start], bytes.Join(f.members, []byte(", "))...), ',', ' '), tail...)
		}
	}
	return out
}

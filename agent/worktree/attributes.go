package worktree

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// attributes marks as binary, in the form of a gitattributes file, every file
// whose part of the patch is not valid UTF-8, or has a NUL, which no script can.
func attributes(patch []byte) []byte {
	var out []byte
	for section := range sections(patch) {
		if isText(section) {
			continue
		}
		header, _, _ := bytes.Cut(section, []byte("\n"))
		if name, ok := fileName(string(header)); ok {
			out = append(out, pattern(name)+" -diff\n"...)
		}
	}
	return out
}

func isText(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }

const sectionStart = "diff --git "

// sections yields the parts of a git patch, one per file.
func sections(patch []byte) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(patch) > 0 {
			end := bytes.Index(patch, []byte("\n"+sectionStart))
			if end < 0 {
				yield(patch)
				return
			}
			if !yield(patch[:end+1]) {
				return
			}
			patch = patch[end+1:]
		}
	}
}

// fileName reads the new name out of "diff --git a/X b/X", or its quoted form.
// Renames have different names on both sides; ours are made without them, and
// in a foreign patch the sides of a rename are found by their quotes or not at
// all.
func fileName(header string) (string, bool) {
	names, ok := strings.CutPrefix(strings.TrimSuffix(header, "\r"), sectionStart)
	if !ok {
		return "", false
	}
	if strings.HasSuffix(names, `"`) {
		at := strings.LastIndex(names[:len(names)-1], ` "b/`)
		if at < 0 {
			return "", false
		}
		name, err := strconv.Unquote(names[at+1:])
		return strings.TrimPrefix(name, "b/"), err == nil
	}
	if half := len(names) / 2; len(names)%2 == 1 && names[half] == ' ' &&
		strings.TrimPrefix(names[:half], "a/") == strings.TrimPrefix(names[half+1:], "b/") {
		return strings.TrimPrefix(names[half+1:], "b/"), true
	}
	_, name, ok := strings.Cut(names, " b/")
	return name, ok
}

// pattern is a line of gitattributes that matches this file and no other: from
// the top, with the signs of globs escaped, quoted as git quotes names.
func pattern(name string) string {
	var glob strings.Builder
	for i := range len(name) {
		if strings.IndexByte(`*?[]\`, name[i]) >= 0 {
			glob.WriteByte('\\')
		}
		glob.WriteByte(name[i])
	}
	var s strings.Builder
	s.WriteString(`"/`)
	for i := range glob.Len() {
		switch c := glob.String()[i]; {
		case c == '"' || c == '\\':
			s.WriteByte('\\')
			s.WriteByte(c)
		case c < ' ' || c == 0x7f:
			s.WriteString(`\` + strconv.FormatInt(int64(c)+0o1000, 8)[1:])
		default:
			s.WriteByte(c)
		}
	}
	s.WriteByte('"')
	return s.String()
}

// excludePattern is a line of gitignore that matches this file or folder and no
// other. A line can hold no line end.
func excludePattern(name string) string {
	var s strings.Builder
	s.WriteByte('/')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '\n' || c == '\r':
			s.WriteByte('?')
		case strings.IndexByte(`*?[]\ `, c) >= 0:
			s.WriteByte('\\')
			s.WriteByte(c)
		default:
			s.WriteByte(c)
		}
	}
	return s.String()
}

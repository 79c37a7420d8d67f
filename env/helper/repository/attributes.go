package repository

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// binaryAttributes returns a gitattributes file that marks as binary each file
// whose section of the patch is not valid UTF-8 or contains a NUL.
func binaryAttributes(patch []byte) []byte {
	var out []byte
	for section := range fileSections(patch) {
		if isText(section) {
			continue
		}
		header, _, _ := bytes.Cut(section, []byte("\n"))
		if name, ok := newFileName(string(header)); ok {
			out = append(out, attributesPattern(name)+" -diff\n"...)
		}
	}
	return out
}

func isText(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }

const sectionStart = "diff --git "

// fileSections yields the sections of a git patch, one per file.
func fileSections(patch []byte) func(func([]byte) bool) {
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

// quoteHeaders quotes the names of files below a folder whose name ends with a space,
// because git apply cannot read the header of such a file without quotes.
func quoteHeaders(patch []byte) []byte {
	if !bytes.Contains(patch, []byte(" /")) {
		return patch
	}
	var out []byte
	for section := range fileSections(patch) {
		header, rest, _ := bytes.Cut(section, []byte("\n"))
		name, ok := newFileName(string(header))
		if ok && strings.Contains(name, " /") && !bytes.HasSuffix(header, []byte(`"`)) {
			header = fmt.Appendf(nil, `%s"a/%s" "b/%[2]s"`, sectionStart, name)
		}
		out = append(append(append(out, header...), '\n'), rest...)
	}
	return out
}

// newFileName returns the new name in a line "diff --git a/X b/X", quoted or
// not. Patches of this package have two equal names. For a rename in other
// patches, the result is right only if the names are quoted.
func newFileName(header string) (string, bool) {
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

// attributesPattern returns a gitattributes pattern that matches only the named
// file.
func attributesPattern(name string) string {
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

// excludePattern returns a gitignore pattern for the named file or folder. A
// newline or CR in the name becomes "?", because a pattern cannot contain it.
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

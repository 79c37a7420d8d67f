package tampering

import (
	"bytes"
	"path"
	"strings"
)

// maxName is the maximum length of a path on Linux, in bytes.
const maxName = 4096

// headerNames returns the possible file names in a header line of a patch.
func headerNames(line []byte) []string {
	if rest, ok := bytes.CutPrefix(line, []byte("Index: ")); ok {
		return fileNames(rest)
	}
	rest, ok := bytes.CutPrefix(line, []byte("diff --git "))
	if !ok || len(rest) > 2*maxName {
		return nil
	}
	if old, after, ok := unquote(string(rest)); ok {
		return append(stripPrefix(old), fileNames([]byte(strings.TrimLeft(after, " ")))...)
	}
	// Here git prints names with spaces only if they differ in nothing but the first
	// element: split the line in the middle. Other such names are on separate lines.
	text := string(rest)
	half := len(text) / 2
	if text[half:] != "" && text[half] == ' ' && dropFirstElement(text[:half]) == dropFirstElement(text[half+1:]) {
		return stripPrefix(text[:half])
	}
	var names []string
	for _, at := range []int{
		strings.Index(text, " b/"), strings.LastIndex(text, " b/"), strings.Index(text, ` "`), strings.IndexByte(text, ' '),
	} {
		if at > 0 {
			names = append(names, stripPrefix(text[:at])...)
			names = append(names, fileNames([]byte(text[at+1:]))...)
		}
	}
	return names
}

// extendedNames returns the file name in an extended header line of git, which has no
// a/ or b/ prefix.
func extendedNames(line []byte) []string {
	for _, word := range []string{"rename from ", "rename to ", "copy from ", "copy to "} {
		rest, ok := bytes.CutPrefix(line, []byte(word))
		if !ok || len(rest) > maxName {
			continue
		}
		if name, _, ok := unquote(string(rest)); ok {
			return cleanPath(name)
		}
		return cleanPath(string(rest))
	}
	return nil
}

// fileNames returns the possible names in a line with one file name. The name may be
// followed by a tab or a space and a timestamp.
func fileNames(rest []byte) []string {
	if len(rest) > maxName {
		rest = rest[:maxName]
	}
	text := string(rest)
	if name, _, ok := unquote(text); ok {
		return stripPrefix(name)
	}
	text, _, _ = strings.Cut(text, "\t")
	names := stripPrefix(text)
	if word, _, ok := strings.Cut(text, " "); ok {
		names = append(names, stripPrefix(word)...)
	}
	return names
}

// stripPrefix returns a name without its first element, as patch -p1 removes it. It also
// returns the whole name if that has no a/ or b/ prefix.
func stripPrefix(name string) []string {
	if name == "/dev/null" {
		return nil
	}
	names := cleanPath(dropFirstElement(name))
	if !strings.HasPrefix(name, "a/") && !strings.HasPrefix(name, "b/") {
		names = append(names, cleanPath(name)...)
	}
	return names
}

// dropFirstElement removes the first element of a path and the slashes after it.
func dropFirstElement(name string) string {
	if _, rest, ok := strings.Cut(name, "/"); ok {
		return strings.TrimLeft(rest, "/")
	}
	return name
}

func cleanPath(name string) []string {
	if name == "" {
		return nil
	}
	return []string{path.Clean(name)}
}

// unquote decodes a name that git printed in double quotes with C escapes, including
// octal numbers. It also returns the text after the name.
func unquote(text string) (name, after string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		return "", text, false
	}
	const letters, decoded = `abtnvfr"\`, "\a\b\t\n\v\f\r\"\\"
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		c := text[i]
		if c == '"' {
			return b.String(), text[i+1:], true
		}
		if c != '\\' {
			b.WriteByte(c)
			continue
		}
		i++
		if i == len(text) {
			break
		}
		if at := strings.IndexByte(letters, text[i]); at >= 0 {
			b.WriteByte(decoded[at])
			continue
		}
		var n, digits int
		for ; digits < 3 && i+digits < len(text) && text[i+digits] >= '0' && text[i+digits] <= '7'; digits++ {
			n = n<<3 | int(text[i+digits]-'0')
		}
		if digits == 0 {
			return "", text, false
		}
		b.WriteByte(byte(n)) // a value above 255 wraps around, as in git
		i += digits - 1
	}
	return "", text, false
}

// PatchFiles returns the names of the files that a patch changes, as paths in the
// repository. Where a header is ambiguous, it returns all possible names.
func PatchFiles(patch []byte) []string {
	var files []string
	for _, s := range sections(patch) {
		files = append(files, s.names...)
	}
	return files
}

package suspect

import (
	"bytes"
	"path"
	"strings"
)

// maxName is the longest path that Linux takes, in bytes.
const maxName = 4096

// announced are the names in a line that announces a file.
func announced(line []byte) []string {
	if rest, ok := bytes.CutPrefix(line, []byte("Index: ")); ok {
		return fileName(rest)
	}
	rest, ok := bytes.CutPrefix(line, []byte("diff --git "))
	if !ok || len(rest) > 2*maxName {
		return nil
	}
	if old, after, ok := unquote(string(rest)); ok {
		return append(stripped(old), fileName([]byte(strings.TrimLeft(after, " ")))...)
	}
	// Names with spaces are told apart by being equal but for their first
	// part; git gives those that are not on lines of their own.
	text := string(rest)
	half := len(text) / 2
	if text[half:] != "" && text[half] == ' ' && withoutFirst(text[:half]) == withoutFirst(text[half+1:]) {
		return stripped(text[:half])
	}
	var names []string
	for _, at := range []int{strings.Index(text, " b/"), strings.LastIndex(text, " b/"), strings.Index(text, ` "`), strings.IndexByte(text, ' ')} {
		if at > 0 {
			names = append(names, stripped(text[:at])...)
			names = append(names, fileName([]byte(text[at+1:]))...)
		}
	}
	return names
}

// extended are the names in git's own lines below the header, which have
// nothing before them.
func extended(line []byte) []string {
	for _, word := range []string{"rename from ", "rename to ", "copy from ", "copy to "} {
		rest, ok := bytes.CutPrefix(line, []byte(word))
		if !ok || len(rest) > maxName {
			continue
		}
		if name, _, ok := unquote(string(rest)); ok {
			return clean(name)
		}
		return clean(string(rest))
	}
	return nil
}

// fileName are the names that a line with one file may mean. A time may follow
// the name, after a tab or after a space.
func fileName(rest []byte) []string {
	if len(rest) > maxName {
		rest = rest[:maxName]
	}
	text := string(rest)
	if name, _, ok := unquote(text); ok {
		return stripped(name)
	}
	text, _, _ = strings.Cut(text, "\t")
	names := stripped(text)
	if word, _, ok := strings.Cut(text, " "); ok {
		names = append(names, stripped(word)...)
	}
	return names
}

// stripped are the paths of a name as patches have them, with one part before
// it. A name without such a part may be meant as it stands.
func stripped(name string) []string {
	if name == "/dev/null" {
		return nil
	}
	names := clean(withoutFirst(name))
	if !strings.HasPrefix(name, "a/") && !strings.HasPrefix(name, "b/") {
		names = append(names, clean(name)...)
	}
	return names
}

// withoutFirst drops the first part of a path, and the slashes after it.
func withoutFirst(name string) string {
	if _, rest, ok := strings.Cut(name, "/"); ok {
		return strings.TrimLeft(rest, "/")
	}
	return name
}

func clean(name string) []string {
	if name == "" {
		return nil
	}
	return []string{path.Clean(name)}
}

// unquote reads a name in double quotes, as git writes those with bytes that
// might do harm: with the escapes of C, octal numbers among them. It also
// returns what follows the name.
func unquote(text string) (name, after string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		return "", text, false
	}
	const letters, meant = `abtnvfr"\`, "\a\b\t\n\v\f\r\"\\"
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
			b.WriteByte(meant[at])
			continue
		}
		var n, digits int
		for ; digits < 3 && i+digits < len(text) && text[i+digits] >= '0' && text[i+digits] <= '7'; digits++ {
			n = n<<3 | int(text[i+digits]-'0')
		}
		if digits == 0 {
			return "", text, false
		}
		b.WriteByte(byte(n)) // above 255 it wraps around, as in git
		i += digits - 1
	}
	return "", text, false
}

package worktree

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// shadowSettings returns the configuration of the shadow git directory:
// settings that mini needs, and the repository's settings on how files become
// objects. listing has the latter, as git config -z prints them. No other
// settings of the repository apply, because some of them run programs.
func shadowSettings(base string, listing []byte) []byte {
	var s bytes.Buffer
	// Names are quoted to be ASCII. Objects are temporary and not compressed.
	s.WriteString("[core]\n\tbare = false\n\tfsmonitor = false\n\thooksPath = /dev/null\n\tquotePath = true\n\tlooseCompression = 0\n")
	if len(base) == 64 {
		s.WriteString("\trepositoryFormatVersion = 1\n[extensions]\n\tobjectFormat = sha256\n")
	}
	for entry := range bytes.SplitSeq(listing, []byte{0}) {
		key, value, hasValue := strings.Cut(string(entry), "\n")
		section, rest, ok := strings.Cut(key, ".")
		if !ok {
			continue
		}
		if at := strings.LastIndexByte(rest, '.'); at >= 0 {
			fmt.Fprintf(&s, "[%s %s]\n\t%s", section, quoteConfig(rest[:at]), rest[at+1:])
		} else {
			fmt.Fprintf(&s, "[%s]\n\t%s", section, rest)
		}
		if hasValue {
			s.WriteString(" = " + quoteConfig(value))
		}
		s.WriteByte('\n')
	}
	return s.Bytes()
}

// quoteConfig quotes a value for a git configuration file.
func quoteConfig(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace(s) + `"`
}

// shellFunction returns a shell function that prints text, and a newline if text
// is not empty and does not end with one. The text must not contain NUL bytes.
func shellFunction(name string, text []byte) string {
	sum := sha256.Sum256(text)
	end := "END_" + hex.EncodeToString(sum[:12])
	var s strings.Builder
	fmt.Fprintf(&s, "%s() {\ncat <<'%s'\n%s", name, end, text)
	if len(text) > 0 && text[len(text)-1] != '\n' {
		s.WriteByte('\n')
	}
	fmt.Fprintf(&s, "%s\n}\n", end)
	return s.String()
}

// shellQuote quotes a word for the shell. It removes NUL bytes.
func shellQuote(s string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(s, "\x00", ""), "'", `'\''`) + "'"
}

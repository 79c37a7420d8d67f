package worktree

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// shadowSettings is the configuration of the shadow: what listing (git config
// -z) says of how files become objects, and what mini needs. Whatever else a
// repository's settings name, programs above all, has no part in a diff.
func shadowSettings(base string, listing []byte) []byte {
	var s bytes.Buffer
	// Names come quoted, so that they are ASCII; what is stored for a moment
	// only is not worth compressing.
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
			fmt.Fprintf(&s, "[%s %s]\n\t%s", section, quoted(rest[:at]), rest[at+1:])
		} else {
			fmt.Fprintf(&s, "[%s]\n\t%s", section, rest)
		}
		if hasValue {
			s.WriteString(" = " + quoted(value))
		}
		s.WriteByte('\n')
	}
	return s.Bytes()
}

// quoted is a value as git's configuration files write it.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace(s) + `"`
}

// file is a function of the shell that prints a text, which has no NUL, byte
// for byte, but with an end to its last line.
func file(name string, text []byte) string {
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

// quote makes one word for the shell.
func quote(s string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(s, "\x00", ""), "'", `'\''`) + "'"
}

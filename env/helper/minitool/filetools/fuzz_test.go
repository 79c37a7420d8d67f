package filetools

import (
	"bytes"
	"fmt"
	"testing"
)

// FuzzEdit: only the old text is replaced, and only if it occurs once or all is set;
// otherwise the edit fails.
func FuzzEdit(f *testing.F) {
	f.Add([]byte("a\nb\nc\n"), []byte("b"), []byte("x"), false)
	f.Add([]byte("a\r\nb\r\n"), []byte("a\nb"), []byte("x\ny"), false)
	f.Add([]byte("aaaa"), []byte("aa"), []byte("a"), true)
	f.Add([]byte("\tx\n"), []byte("  x\n"), []byte(""), false)
	f.Add([]byte("a\nb"), []byte("b\n"), []byte("c\n"), false)
	f.Fuzz(func(t *testing.T, text, old, replacement []byte, all bool) {
		original := bytes.Clone(text)
		c := change{old: old, new: replacement}
		if c.validate() != nil {
			return
		}
		result, err := apply(text, []change{c}, all)
		if !bytes.Equal(text, original) {
			t.Fatal("the text that was read has changed")
		}
		if onlyCRLF(text) {
			old, _ = toCRLF(old)
			replacement, _ = toCRLF(replacement)
		}
		n := bytes.Count(text, old)
		once := n == 1 && bytes.LastIndex(text, old) == bytes.Index(text, old)
		switch {
		case (err == nil) != (once || all && n > 0):
			t.Fatalf("%d matches in %q: %v", n, text, err)
		case err == nil && !bytes.Equal(result.text, bytes.ReplaceAll(text, old, replacement)):
			t.Fatalf("%q became %q", text, result.text)
		case err == nil && len(result.lines) != n:
			t.Fatalf("%d replacements of %d are reported", len(result.lines), n)
		}
	})
}

// FuzzBlocks: formatted blocks parse to the same changes, and any text gives an error
// or valid changes.
func FuzzBlocks(f *testing.F) {
	f.Add([]byte("<<<<<<< OLD\na\n=======\nb\n>>>>>>> NEW\n"), []byte("a\nb"))
	f.Add([]byte("<<<<<<<\n=======\n>>>>>>>"), []byte("\n"))
	f.Add([]byte("<<<<<<<\n=======\n=======\n>>>>>>>"), []byte("a\r\n\r\nb\r\n"))
	f.Fuzz(func(t *testing.T, input, text []byte) {
		changes, err := parseBlocks(input)
		if err != nil {
			return
		}
		if len(changes) == 0 {
			t.Fatal("neither an error nor a change")
		}
		if result, err := apply(text, changes, true); err == nil && len(result.lines) == 0 {
			t.Fatalf("%q in %q: neither an error nor a change", input, text)
		}
		// With markers longer than any line, the blocks parse to the same changes.
		signs := len(input) + minMarkerLength
		var again bytes.Buffer
		for _, c := range changes {
			fmt.Fprintf(&again, "%s\n%s%s\n%s%s\n", bytes.Repeat([]byte("<"), signs), c.old, bytes.Repeat([]byte("="), signs), c.new, bytes.Repeat([]byte(">"), signs))
		}
		same, err := parseBlocks(again.Bytes())
		if err != nil || len(same) != len(changes) {
			t.Fatalf("%q: %d blocks, %v", again.Bytes(), len(same), err)
		}
		for i := range same {
			if !bytes.Equal(same[i].old, changes[i].old) || !bytes.Equal(same[i].new, changes[i].new) {
				t.Fatalf("block %d is %q now, was %q", i, same[i].old, changes[i].old)
			}
		}
	})
}

package text_test

import (
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/text"
)

func TestClip(t *testing.T) {
	for _, c := range []struct {
		text         string
		limit        int
		bytes, runes string
	}{
		{"", 0, "", ""},
		{"abc", 3, "abc", "abc"},
		{"abcd", 3, "abc...", "abc..."},
		{"aéz", 2, "a...", "aé..."},
		{"ééé", 3, "é...", "ééé"},
		{"a", -1, "...", "a"},
	} {
		assert.Equal(t, c.bytes, text.Clip(c.text, c.limit), "Clip(%q, %d)", c.text, c.limit)
		assert.Equal(t, c.runes, text.ClipRunes(c.text, c.limit), "ClipRunes(%q, %d)", c.text, c.limit)
	}
}

func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"1 file": text.Count(1, "file"), "0 files": text.Count(0, "file"), "2 entries": text.Count(2, "entry"),
		"3 keys": text.Count(3, "key"), "4 batches": text.Count(4, "batch"), "1 entry": text.Count(1, "entry"),
	} {
		assert.Equal(t, want, got)
	}
}

func TestJSON(t *testing.T) {
	got, err := text.JSON(map[string]string{"a": "<b>"})
	if want := "{\n  \"a\": \"<b>\"\n}\n"; err != nil || string(got) != want {
		t.Errorf("JSON = %q, %v, want %q", got, err, want)
	}
	assert.Equal(t, "a b c", text.OneLine(" a\n\tb  c "), "OneLine")
	assert.Equal(t, "a", text.FirstLine("a\nb"), "FirstLine")
}

func TestCSVField(t *testing.T) {
	for s, want := range map[string]string{
		"": "", "ls": "ls", "a=b": "a=b", " =1": " =1",
		"=cmd()": "'=cmd()", "+1": "'+1", "-1": "'-1", "@x": "'@x", "\t=1": "'\t=1", "\r=1": "'\r=1",
	} {
		assert.Equal(t, want, text.CSVField(s), "CSVField(%q)", s)
	}
}

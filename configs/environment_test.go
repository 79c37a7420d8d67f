package configs_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/configs"
)

func TestParseMount(t *testing.T) {
	for text, want := range map[string]configs.Mount{
		"/a:/b":           {Source: "/a", Target: "/b"},
		"/a:/b:ro":        {Source: "/a", Target: "/b"},
		"/a:/b:rw":        {Source: "/a", Target: "/b", ReadWrite: true},
		"/a b:/ü":         {Source: "/a b", Target: "/ü"},
		"a:b":             {Source: "a", Target: "b"}, // ParseMount does not check paths
		"":                {},
		"/a":              {},
		":/b":             {},
		"/a:":             {},
		"/a:/b:":          {},
		"/a:/b:rw,z":      {},
		"/a:/b:rw:more":   {},
		"/a:/b\n:rw:\x00": {},
	} {
		got, err := configs.ParseMount(text)
		if (err == nil) != (want != configs.Mount{}) {
			t.Errorf("%q: %v", text, err)
		}
		if err == nil && got != want {
			t.Errorf("%q is %+v, want %+v", text, got, want)
		}
	}
}

func TestParseUlimit(t *testing.T) {
	for text, want := range map[string]*configs.Ulimit{
		"1024":                 {Name: "n", Soft: 1024, Hard: 1024},
		"1024:4096":            {Name: "n", Soft: 1024, Hard: 4096},
		"0":                    {Name: "n"},
		"-1":                   {Name: "n", Soft: -1, Hard: -1},
		"5:unlimited":          {Name: "n", Soft: 5, Hard: -1},
		"unlimited":            {Name: "n", Soft: -1, Hard: -1},
		"":                     nil,
		"many":                 nil,
		"-2":                   nil,
		"1:2:3":                nil,
		"1.5":                  nil,
		"1:":                   nil,
		":1":                   nil,
		"99999999999999999999": nil,
	} {
		got, err := configs.ParseUlimit("n", text)
		if (err == nil) != (want != nil) {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if want != nil && got != *want {
			t.Errorf("%q is %+v, want %+v", text, got, *want)
		}
	}
}

// FuzzParseMount checks that a parsed mount consists of parts of the text.
func FuzzParseMount(f *testing.F) {
	for _, s := range []string{"/a:/b", "/a:/b:rw", "/a:/b:ro", "::", "a:b:rw:"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := configs.ParseMount(s)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than a line: %q", err)
			}
			return
		}
		again := m.Source + ":" + m.Target
		if m.Source == "" || m.Target == "" || strings.Contains(m.Target, ":") || !strings.HasPrefix(s, again) {
			t.Errorf("%q is %+v", s, m)
		}
		back, err := configs.ParseMount(again + map[bool]string{true: ":rw"}[m.ReadWrite])
		if diff := cmp.Diff(m, back); err != nil || diff != "" {
			t.Errorf("%q: %v\n%s", s, err, diff)
		}
	})
}

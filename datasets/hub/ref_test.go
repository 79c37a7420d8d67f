package hub_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/hub"
)

func TestParseRef(t *testing.T) {
	commit := strings.Repeat("a1", 20)
	for in, want := range map[string]hub.Ref{
		"verified":                         {Repo: "SWE-bench/SWE-bench_Verified", Split: "test"},
		"verified@v1.0":                    {Repo: "SWE-bench/SWE-bench_Verified", Revision: "v1.0", Split: "test"},
		"multimodal":                       {Repo: "SWE-bench/SWE-bench_Multimodal", Split: "dev"},
		"smith":                            {Repo: "SWE-bench/SWE-smith", Split: "train"},
		"org/name":                         {Repo: "org/name"},
		"org/name@refs/convert/parquet":    {Repo: "org/name", Revision: "refs/convert/parquet"},
		"org/name@" + commit:               {Repo: "org/name", Revision: commit},
		"0x.y-z/_a.b":                      {Repo: "0x.y-z/_a.b"},
		"princeton-nlp/SWE-bench_Verified": {Repo: "princeton-nlp/SWE-bench_Verified"},
	} {
		if got, err := hub.ParseRef(in, ""); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", in, got, err, want)
		}
	}
	if got, err := hub.ParseRef("multimodal", "test"); err != nil || got.Split != "test" {
		t.Errorf("with a split: %+v, %v", got, err)
	}
}

func TestParseRefRefuses(t *testing.T) {
	for _, tt := range []struct{ name, split string }{
		{"", ""},
		{"verifed", ""},
		{"a/b/c", ""},
		{"../etc", ""},
		{"a/..", ""},
		{"a/b..c", ""},
		{"a--b/c", ""},
		{"-a/b", ""},
		{"/a/b", ""},
		{`a\b/c`, ""},
		{"a/b c", ""},
		{"a/b?x=1", ""},
		{"a/b#x", ""},
		{"a/b%2f", ""},
		{"a/b\x1b[2J", ""},
		{"a/b\n", ""},
		{"ä/b", ""},
		{"https://huggingface.co/datasets/a/b", ""},
		{"a/" + strings.Repeat("b", 97), ""},
		{"a/b@", ""},
		{"verified@", ""},
		{"a/b@..", ""},
		{"a/b@x/../y", ""},
		{"a/b@/x", ""},
		{"a/b@x/", ""},
		{"a/b@x//y", ""},
		{"a/b@x@y", ""},
		{"a/b@x\x00", ""},
		{"a/b@-x", ""},
		{"a/b@" + strings.Repeat("x", 201), ""},
		{"a/b", "../x"},
		{"a/b", "x y"},
		{"a/b", "\x1b[2J"},
	} {
		_, err := hub.ParseRef(tt.name, tt.split)
		if !errors.Is(err, datasets.ErrData) {
			t.Errorf("%q, split %q: %v", tt.name, tt.split, err)
			continue
		}
		if text := err.Error(); strings.ContainsAny(text, "\x00\x1b\n") || len(text) > 300 {
			t.Errorf("unsafe for a terminal: %q", text)
		}
	}
}

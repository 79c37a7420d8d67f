package query_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories/query"
	"github.com/minibench/mini/trajectories/timeline"
)

func cost(c float64) *model.Cost { m := model.Cost(c); return &m }

func TestMatches(t *testing.T) {
	rows := []query.Row{
		{ID: "django-2", Status: []string{"Submitted", "ended", "submitted"}, Verdict: "resolved", Labels: []string{"flaky", "flaky2"}, Cost: cost(0.5)},
		{ID: "django-10", Status: []string{"LimitsExceeded", "ended", "limit"}, Verdict: "unresolved", Labels: []string{"flaky"}, Cost: cost(3)},
		{ID: "sympy-1", Status: []string{"running"}, Cost: cost(0)},
		{ID: "theirs", Status: []string{"AuthenticationError", "ended", "provider"}},
	}
	for line, want := range map[string]string{
		"":                                 "django-2 django-10 sympy-1 theirs",
		"status:limit":                     "django-10",
		"status:LimitsExceeded":            "django-10",
		"status:running":                   "sympy-1",
		"verdict:resolved":                 "django-2",
		"verdict:unres":                    "django-10",
		"verdict:none":                     "sympy-1 theirs",
		"cost>1":                           "django-10",
		"cost>$0.4 cost<3":                 "django-2",
		"cost<1":                           "django-2 sympy-1", // unknown for theirs
		"DJANGO 10":                        "django-10",
		"status:ended cost>0":              "django-2 django-10",
		"status:limit verdict:unresolved ": "django-10",
		"label:Flaky":                      "django-2 django-10",
		"label:flaky label:flaky2":         "django-2",
		"label:fla":                        "",
		`text:"no such" status:limit`:      "django-10",
	} {
		f, err := query.Parse(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		var got []string
		for _, row := range rows {
			if f.Matches(row) {
				got = append(got, row.ID)
			}
		}
		assert.Equal(t, want, strings.Join(got, " "), "%s shows", line)
	}
}

func TestParseErrors(t *testing.T) {
	for line, want := range map[string]string{
		"colour:red":    `unknown filter "colour:" (status:WORD,`,
		"cost>much":     `cost> must be followed by a number, got "much"`,
		"cost>NaN":      "must be followed by a number",
		"cost>":         "missing value after cost>",
		`text:"open`:    "missing closing quote",
		"text:a text:b": "once",
	} {
		_, err := query.Parse(line)
		assert.ErrorContains(t, err, want, "%s", line)
	}
}

func TestMatchesText(t *testing.T) {
	step := &timeline.Step{Items: []*timeline.Item{{Kind: timeline.Command, Text: "ls", Results: []*timeline.Item{{Kind: timeline.Output, Text: "It's No such file"}}}}}
	tl := &timeline.Timeline{Steps: []*timeline.Step{step}}
	for line, want := range map[string]bool{`text:"no such"`: true, "text:No": true, "text:NO": false, `text:"it's"`: true, "text:other": false, "": true} {
		f, err := query.Parse(line)
		if err != nil || f.MatchesText(tl) != want {
			t.Errorf("%s: %v, %v", line, !want, err)
		}
	}
}

// FileMayContain has no false negatives.
func TestFileMayContain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	write := func(content string) {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	write(`{"output":"a \u001b[31m \"Quoted\" <tag> \\ path"}`)
	for needle, want := range map[string]bool{
		`"quoted" <tag>`: true, `say "quoted"`: false, "QUOTED": false, "Quoted": true, `\ path`: true, "\x1b[31m": true, "other": false,
	} {
		if query.FileMayContain(path, needle) != want {
			t.Errorf("%q: %v", needle, !want)
		}
	}
	write(`{"output":{"base64":"/w=="}}`)
	if !query.FileMayContain(path, "other") {
		t.Error("a journal with base64 is skipped")
	}
}

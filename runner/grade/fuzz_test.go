package grade_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/logs"
)

// FuzzGrade checks that every log leads to an error or to a verdict whose report is valid
// JSON, and that a log without both markers never resolves the instance.
func FuzzGrade(f *testing.F) {
	for i, text := range []string{
		"", marked("PASSED t::a\n"), marked("t::a ... ok\n"), marked("FAIL:\n"), marked("  3 passing\n") + ">>>>> Test Exit Code: 1",
		"Killed", "Timeout error: 5 seconds exceeded", marked("PASSED t::p[a b]\nFAILED t::p[a c]\n"), ">>>>> Tests Errored",
	} {
		f.Add(text, uint(i), i%2 == 0)
	}
	names := logs.Names()
	f.Fuzz(func(t *testing.T, text string, parser uint, failOnly bool) {
		r := grade.TestSpec{
			InstanceID: "x__x-2006", Version: "3.0", Parser: names[parser%uint(len(names))], EvalType: grade.PassAndFail,
			FailToPass: []string{"t::a", "t::p[a"}, PassToPass: []string{"t::b"},
		}
		if failOnly {
			r.EvalType = grade.FailOnly
		}
		v, err := r.Grade(text)
		if err != nil {
			return
		}
		if !json.Valid(v.Report.JSON(r.InstanceID)) {
			t.Errorf("a report that is not JSON: %s", v.Report.JSON(r.InstanceID))
		}
		whole := strings.Contains(text, grade.StartMarker) && strings.Contains(text, grade.EndMarker)
		if v.Report.Applied && !whole || v.Report.Resolved != (v.Resolution == grade.ResolvedFull) || v.Report.Resolved && !v.Report.Applied {
			t.Errorf("a verdict that cannot be: %+v", v)
		}
	})
}

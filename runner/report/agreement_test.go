package report_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/runner/compare"
	"github.com/minibench/mini/runner/report"
)

// The report and the comparison compute the same rate, interval and pass@k for a
// run in which all attempts have a verdict, and with missing verdicts as failures.
func TestReportAgreesWithCompare(t *testing.T) {
	for name, ends := range map[string][]string{
		"one attempt":        {"R", "u", "u", "R", "R"},
		"three attempts":     {"RRu", "uuu", "RRR", "uRu", "RuR"},
		"one without a test": {"RRu", "u-u", "RRR"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			var instances []string
			first := 0
			for i, end := range ends {
				var samples []string
				for n, c := range end {
					result := `"class":"submitted","exit_status":"Submitted","attempt":%d,"steps":5,"cost":0.5,"seconds":60,"patch_bytes":4,"verdict":%s`
					verdict := map[rune]string{'R': `"resolved"`, 'u': `"unresolved"`, '-': "null"}[c]
					samples = append(samples, fmt.Sprintf(result, n+1, verdict)+fmt.Sprintf(`,"sample":%d`, n+1))
				}
				if end[0] == 'R' {
					first++
				}
				instances = append(instances, fmt.Sprintf(`"a__a-%d":{%s,"attempts":%d,"samples":[{%s}]}`,
					i, samples[0], len(end), strings.Join(samples, "},{")))
			}
			writeFile(t, filepath.Join(dir, "results.json"), `{"format":"mini-1","instances":{`+strings.Join(instances, ",\n")+`}}`)
			writeFile(t, filepath.Join(dir, "run.json"), fmt.Sprintf(
				`{"format":"mini-1","dataset":{"name":"d","selected":%d},"sessions":[{"ended":"2026-01-01T00:00:00Z","summary":{"samples":%d}}]}`,
				len(ends), len(ends[0])))

			loaded, err := compare.Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			other := loaded
			other.Name = "other"
			compared, err := compare.New([]compare.Run{loaded, other}, compare.Options{Missing: compare.Fail})
			if err != nil {
				t.Fatal(err)
			}
			of := compared.Runs[0]
			summary := report.NewSummary(read(t, dir), nil, began)
			if got, want := summary.Totals.Cost, 0.5*float64(len(ends)*len(ends[0])); float64(got) != want || of.Cost.Total != want {
				t.Errorf("cost %v in the report, %v compared, want %v", got, of.Cost.Total, want)
			}
			if len(ends[0]) == 1 {
				rate := report.NewResolveRate(first, len(ends))
				if rate.Rate != of.Rate.Mean || rate.Low != of.Rate.Interval.Low || rate.High != of.Rate.Interval.High {
					t.Errorf("%+v in the report, %+v compared", rate, of.Rate)
				}
				return
			}
			r := summary.Repetitions
			if r == nil {
				t.Fatal("no repetitions")
			}
			if diff := cmp.Diff(of.Rate, *r.Rate); diff != "" {
				t.Error(diff)
			}
			for i, p := range r.Pass {
				if c := of.Pass[i]; p.K != c.K || p.Rate != c.Any || p.Of != c.Instances {
					t.Errorf("%+v in the report, %+v compared", p, c)
				}
			}
		})
	}
}

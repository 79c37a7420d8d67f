package verdicts

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/rootdir"
)

// maxReport bounds a report.json, in bytes.
const maxReport = 16 << 20

// FailedTests are the tests of an instance that failed in one run of its
// evaluation.
type FailedTests struct {
	FailToPass []string `json:"FAIL_TO_PASS"` // still fail
	PassToPass []string `json:"PASS_TO_PASS"` // broke
}

// Equal says whether the same tests failed.
func (f FailedTests) Equal(other FailedTests) bool {
	return slices.Equal(f.FailToPass, other.FailToPass) && slices.Equal(f.PassToPass, other.PassToPass)
}

// ReadFailed reads the failed tests from the report.json of one run of an
// evaluation. sub is the run's folder within that of the results, with slashes;
// links that lead out of it are refused. The result is nil where no test failed,
// or where there is no report.
func ReadFailed(dir, sub, instanceID string) (*FailedTests, error) {
	if sub == "" {
		return nil, nil //nolint:nilnil // a run without files has no failed tests
	}
	root, err := rootdir.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("read failed tests: %w", err)
	}
	defer root.Close() //nolint:errcheck // only read
	name := filepath.Join(dir, filepath.FromSlash(sub), "report.json")
	data, err := root.ReadFile(name, maxReport)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // as of a patch that does not apply
	}
	if err != nil {
		return nil, fmt.Errorf("read failed tests: %w", err)
	}
	tests, err := grade.ReadTests(data, instanceID)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	failed := &FailedTests{FailToPass: tests.FailToPass.Failure, PassToPass: tests.PassToPass.Failure}
	if len(failed.FailToPass)+len(failed.PassToPass) == 0 {
		return nil, nil //nolint:nilnil // all tests passed
	}
	return failed, nil
}

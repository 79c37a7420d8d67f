package verdicts

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/runner/grade"
)

// maxReport is the maximum size of a report.json, in bytes.
const maxReport = 16 << 20

// FailedTests lists the tests of an instance that failed in one test run.
type FailedTests struct {
	FailToPass []string `json:"FAIL_TO_PASS"` // still fail
	PassToPass []string `json:"PASS_TO_PASS"` // broke
}

// Equal reports whether the same tests failed.
func (f FailedTests) Equal(other FailedTests) bool {
	return slices.Equal(f.FailToPass, other.FailToPass) && slices.Equal(f.PassToPass, other.PassToPass)
}

// ReadFailedTests reads the failed tests from the report.json of one test run.
// dir is the run folder, sub the slash-separated path of the test run's folder
// in it. ReadFailedTests does not follow links out of dir. It returns nil if no
// test failed or there is no report.
func ReadFailedTests(dir, sub, instanceID string) (*FailedTests, error) {
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
		return nil, nil //nolint:nilnil // for example, the patch did not apply
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

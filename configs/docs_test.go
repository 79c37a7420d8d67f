package configs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/minibench/mini/configs"
)

// TestSettingsInDocuments checks that the YAML examples in the documentation are valid
// configurations.
func TestSettingsInDocuments(t *testing.T) {
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	for page, minBlocks := range map[string]int{"docs/tools.md": 8, "docs/compaction.md": 2, "docs/models.md": 1, "docs/sandbox.md": 1, "README.md": 1} {
		text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(page)))
		if err != nil {
			t.Fatal(err)
		}
		all := block.FindAllStringSubmatch(string(text), -1)
		if len(all) < minBlocks {
			t.Errorf("%s: %d, want %d", page, len(all), minBlocks)
		}
		for i, m := range all {
			l, err := configs.ReadFile(file(t, fmt.Sprintf("%d.yaml", i), m[1]))
			if err == nil {
				_, err = configs.Merge(builtin(t, "mini"), l)
			}
			if err != nil {
				t.Errorf("%s: %v\n%s", page, err, m[1])
			}
		}
	}
}

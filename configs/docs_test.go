package configs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/minibench/mini/configs"
)

// TestSettingsInDocuments takes the settings that pages show for what they are: no
// key is unknown, and no value of another kind.
func TestSettingsInDocuments(t *testing.T) {
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	for page, least := range map[string]int{"docs/tools.md": 8, "docs/compaction.md": 2, "docs/models.md": 1, "docs/sandbox.md": 1, "README.md": 1} {
		text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(page)))
		if err != nil {
			t.Fatal(err)
		}
		all := block.FindAllStringSubmatch(string(text), -1)
		if len(all) < least {
			t.Errorf("%s: %d, want %d", page, len(all), least)
		}
		for i, m := range all {
			l, err := configs.ReadFile(file(t, fmt.Sprintf("%d.yaml", i), m[1]))
			if err == nil {
				_, err = configs.Merge(shipped(t, "mini"), l)
			}
			if err != nil {
				t.Errorf("%s: %v\n%s", page, err, m[1])
			}
		}
	}
}

package report

import (
	"fmt"
	"strings"

	"github.com/docker/go-units"
)

// Count is a number with its noun, as "1 worker" or "2 workers".
func Count(n int, noun string) string {
	return fmt.Sprintf("%d %s", n, plural(n, noun))
}

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	if strings.HasSuffix(noun, "ch") {
		return noun + "es"
	}
	return noun + "s"
}

// Size is room on a disk, counted as disks are sold: "1.5 GB".
func Size(bytes int64) string {
	return units.CustomSize("%.3g %s", float64(bytes), 1000, []string{"B", "kB", "MB", "GB", "TB", "PB"})
}

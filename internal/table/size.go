package table

import (
	"github.com/docker/go-units"
)

// SizeText formats a number of bytes with decimal units, such as "1.5 GB".
func SizeText(bytes int64) string {
	return units.CustomSize("%.3g %s", float64(bytes), 1000, []string{"B", "kB", "MB", "GB", "TB", "PB"})
}

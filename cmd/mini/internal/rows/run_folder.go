package rows

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/internal/lazyregexp"
)

// InvalidFolderChars matches sequences of characters that mini replaces in folder names.
var InvalidFolderChars = lazyregexp.New(`[^\pL\pN._-]+`)

// MaxFolderName is the maximum length of the descriptive part of a folder name, in characters.
const MaxFolderName = 60

// RunFolder returns output or, if it is empty, the path of a folder in mini-runs that does
// not exist yet, named after the datasets and the time. It creates nothing.
func RunFolder(output string, subsets []string) string {
	if output != "" {
		return output
	}
	var names []string
	for _, s := range subsets {
		names = append(names, strings.Trim(InvalidFolderChars.ReplaceAllString(filepath.Base(s), "-"), ".-"))
	}
	name := []rune(strings.Join(names, "+"))
	name = name[:min(len(name), MaxFolderName)]
	first := filepath.Join(cmdutil.DefaultRunsDir, string(name)+"-"+time.Now().Format("20060102-150405"))
	dir := first
	for n := 2; cmdutil.FileExists(dir); n++ { // another run started in the same second
		dir = fmt.Sprintf("%s-%d", first, n)
	}
	return dir
}

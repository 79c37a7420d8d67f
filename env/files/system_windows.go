package files

import (
	"os"
	"path/filepath"
	"strings"
)

const forReading = os.O_RDONLY

// isLocal reports whether a part of a name is one name on this system: names of
// devices, drives and streams are not.
func isLocal(part string) bool { return filepath.IsLocal(part) && !strings.ContainsAny(part, `\:`) }

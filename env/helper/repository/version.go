package repository

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
)

//go:embed find.go
var findSource string

//go:embed scrub.go
var scrubSource string

//go:embed scrubrefs.go
var refsSource string

//go:embed scrubobjects.go
var objectsSource string

//go:embed inventory.go
var inventorySource string

// ScrubVersion identifies the scrub: it changes with its source, so that images which
// another version has prepared are prepared again.
func ScrubVersion() string {
	sum := sha256.Sum256([]byte(findSource + scrubSource + refsSource + objectsSource + inventorySource))
	return "scrub-" + hex.EncodeToString(sum[:8])
}

package datasetopen

import (
	"os"
	"slices"
	"strings"

	"github.com/minibench/mini/datasets/hub"
)

// Names returns the names of the demo and of the aliases.
func Names() []string {
	return append([]string{Demo}, Aliases()...)
}

// IsName reports whether a name that is not a flag's value is that of a dataset, not of an instance.
func IsName(name string) bool {
	_, err := os.Stat(name)
	return slices.Contains(Names(), name) || err == nil || IsFileName(name) || strings.Contains(name, "/")
}

// Aliases returns the aliases of datasets on the hub.
func Aliases() []string {
	var names []string
	for _, a := range hub.Aliases() {
		names = append(names, a.Name)
	}
	return names
}

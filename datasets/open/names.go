package datasetopen

import (
	"github.com/minibench/mini/datasets/hub"
)

// Names returns the names of the demo and of the aliases.
func Names() []string {
	return append([]string{Demo}, Aliases()...)
}

// Aliases returns the aliases of datasets on the hub.
func Aliases() []string {
	var names []string
	for _, a := range hub.Aliases() {
		names = append(names, a.Name)
	}
	return names
}

package tokens

import "slices"

// Names are the vocabularies that can be asked for by name.
func Names() []string { return []string{"o200k_base", "cl100k_base"} }

// Named counts with the vocabulary of that name, whatever the model.
func Named(name string) (Counter, bool) {
	switch i := slices.Index(Names(), name); i {
	case 0:
		return Counter{newer}, true
	case 1:
		return Counter{older}, true
	default:
		return Counter{}, false
	}
}

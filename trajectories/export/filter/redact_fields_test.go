package filter

import "testing"

// TestFieldNames checks that the fields in notSearched exist.
func TestFieldNames(t *testing.T) {
	for structType, names := range notSearched {
		for _, name := range names {
			if _, ok := structType.FieldByName(name); !ok {
				t.Errorf("%s has no field %s", structType, name)
			}
		}
	}
}

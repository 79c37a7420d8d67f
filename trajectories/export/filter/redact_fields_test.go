package filter

import "testing"

// TestFieldNames checks that the fields that are not searched exist, since they
// are named by strings.
func TestFieldNames(t *testing.T) {
	for structType, names := range notSearched {
		for _, name := range names {
			if _, ok := structType.FieldByName(name); !ok {
				t.Errorf("%s has no field %s", structType, name)
			}
		}
	}
}

package datasets

import (
	"bytes"
	"encoding/json"
)

// Fields are the columns of the row as templates see them: every column by its
// own name, the lists of tests as lists whichever way they were written.
func (in Instance) Fields() map[string]any {
	fields := map[string]any{}
	for name, raw := range in.Row {
		var v any
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber() // a number is shown as it was written
		if dec.Decode(&v) == nil {
			fields[name] = v
		}
	}
	fields["instance_id"] = in.ID
	fields["FAIL_TO_PASS"] = in.FailToPass
	fields["PASS_TO_PASS"] = in.PassToPass
	fields["image"] = in.ImageName()
	return fields
}

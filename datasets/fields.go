package datasets

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Fields are the columns of the row as templates see them: every column by its
// own name, the lists of tests as lists whichever way they were written.
func (in Instance) Fields() map[string]any {
	fields := map[string]any{}
	for name, raw := range in.Row {
		if v, err := decoded(raw); err == nil {
			fields[name] = v
		}
	}
	fields["instance_id"] = in.ID
	fields["FAIL_TO_PASS"] = in.FailToPass
	fields["PASS_TO_PASS"] = in.PassToPass
	fields["image"] = in.ImageName()
	return fields
}

// JSON is the row with every column, as indented JSON with sorted keys and a
// newline at its end.
func (in Instance) JSON() ([]byte, error) {
	row := map[string]any{}
	for name, raw := range in.Row {
		v, err := decoded(raw)
		if err != nil {
			return nil, fmt.Errorf("show row %s: %s: %w", in.ID, name, err)
		}
		row[name] = v
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // patches are full of < and &
	enc.SetIndent("", "  ")
	if err := enc.Encode(row); err != nil {
		return nil, fmt.Errorf("show row %s: %w", in.ID, err)
	}
	return b.Bytes(), nil
}

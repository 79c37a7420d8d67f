package datasets

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Fields returns the columns of the row for templates, by name. FAIL_TO_PASS and
// PASS_TO_PASS are lists, even if the row has them as JSON strings. "image" is ImageName.
func (in Instance) Fields() map[string]any {
	fields := map[string]any{}
	for name, raw := range in.Row {
		if v, err := decodeJSON(raw); err == nil {
			fields[name] = v
		}
	}
	fields["instance_id"] = in.ID
	fields["FAIL_TO_PASS"] = in.FailToPass
	fields["PASS_TO_PASS"] = in.PassToPass
	fields["image"] = in.ImageName()
	return fields
}

// JSON returns the row with all columns, as indented JSON with sorted keys and a final
// newline.
func (in Instance) JSON() ([]byte, error) {
	row := map[string]any{}
	for name, raw := range in.Row {
		v, err := decodeJSON(raw)
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

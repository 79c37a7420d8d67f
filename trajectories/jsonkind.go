package trajectories

import "encoding/json"

// JSONKind returns the kind of a JSON value with an article, such as "a list", for
// error messages. It returns "nothing" for empty data.
func JSONKind(v json.RawMessage) string {
	if len(v) == 0 {
		return "nothing"
	}
	switch v[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 'n':
		return "null"
	case 't', 'f':
		return "true or false"
	}
	return "a number"
}

package convert

import "fmt"

// readATIF reads an Agent Trajectory Interchange Format file.
func readATIF(_ source, _ []byte) (*File, error) {
	return nil, fmt.Errorf("%w: ATIF is not read yet", ErrUnknown)
}

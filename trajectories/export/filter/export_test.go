package filter

// Scan returns the redacted text and the kinds of secrets in it.
func Scan(text string, known ...KnownSecret) (clean string, kinds []string, err error) {
	s, err := newScanner(known)
	if err != nil {
		return "", nil, err
	}
	clean = redact(s, text, nil, func(f secret, _ bool) { kinds = append(kinds, f.kind) })
	return clean, kinds, nil
}

// Scanner returns a function that scans texts.
func Scanner(known ...KnownSecret) (func(text string) (clean string, kinds []string), error) {
	s, err := newScanner(known)
	return func(text string) (string, []string) {
		var kinds []string
		clean := redact(s, text, nil, func(f secret, _ bool) { kinds = append(kinds, f.kind) })
		return clean, kinds
	}, err
}

// Functions for tests.
var (
	TestSetOfID      = testSetOfID
	TestSetOfDataset = testSetOfDataset
	NewHistogram     = newHistogram
)

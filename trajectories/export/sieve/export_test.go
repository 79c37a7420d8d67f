package sieve

// Scan is what the scanner finds in a text, and the text without it.
func Scan(text string, known ...Known) (clean string, kinds []string, err error) {
	s, err := newScanner(known)
	if err != nil {
		return "", nil, err
	}
	clean = redact(s, text, nil, func(f secret, _ bool) { kinds = append(kinds, f.kind) })
	return clean, kinds, nil
}

// Scanner scans many texts.
func Scanner(known ...Known) (func(text []byte) (clean []byte, kinds []string), error) {
	s, err := newScanner(known)
	return func(text []byte) ([]byte, []string) {
		var kinds []string
		clean := redact(s, text, nil, func(f secret, _ bool) { kinds = append(kinds, f.kind) })
		return clean, kinds
	}, err
}

// TestSet is the test set of an instance id, or of a dataset.
var (
	TestID      = testID
	TestDataset = testDataset
	NewHist     = newHistogram
)

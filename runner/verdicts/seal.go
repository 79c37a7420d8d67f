package verdicts

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// The folder of a run may come from a stranger, with verdicts in it. What tells
// the user's own records from these is a seal: an HMAC with a key that is the
// user's, and that is kept outside of all runs (see evaluate.Config).

// Sealed is a record with its seal. Without a key it has none.
func (r Record) Sealed(key []byte) (Record, error) {
	r.Seal = ""
	if len(key) == 0 {
		return r, nil
	}
	data, err := json.Marshal(r)
	if err != nil {
		return r, err
	}
	var read Record // what is not valid UTF-8 is another text when it is read again
	if err := json.Unmarshal(data, &read); err != nil {
		return r, err
	}
	r.Seal, err = read.sum(key)
	return r, err
}

// IsSealed says whether a record that was read has the seal of this key.
func (r Record) IsSealed(key []byte) bool {
	if len(key) == 0 || r.Seal == "" {
		return false
	}
	want, err := r.sum(key)
	return err == nil && hmac.Equal([]byte(want), []byte(r.Seal))
}

// sum is the HMAC-SHA256 of all of a record but its seal, in hex.
func (r Record) sum(key []byte) (string, error) {
	r.Seal = ""
	data, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write(data) // never fails
	return hex.EncodeToString(mac.Sum(nil)), nil
}

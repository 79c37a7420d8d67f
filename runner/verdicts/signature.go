package verdicts

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// A run folder may come from another user, with verdicts in it. The signature
// identifies the user's own records: it is an HMAC with a key that the user keeps
// outside of all run folders (see evaluate.Config).

// WithSignature returns the record with its signature, or without one if the
// key is empty.
func (r Record) WithSignature(key []byte) (Record, error) {
	r.Signature = ""
	if len(key) == 0 {
		return r, nil
	}
	data, err := json.Marshal(r)
	if err != nil {
		return r, err
	}
	var decoded Record // sign the decoded record, because encoding replaces invalid UTF-8
	if err := json.Unmarshal(data, &decoded); err != nil {
		return r, err
	}
	r.Signature, err = decoded.computeHMAC(key)
	return r, err
}

// IsSignedBy reports whether the signature of a decoded record was made with
// this key.
func (r Record) IsSignedBy(key []byte) bool {
	if len(key) == 0 || r.Signature == "" {
		return false
	}
	want, err := r.computeHMAC(key)
	return err == nil && hmac.Equal([]byte(want), []byte(r.Signature))
}

// computeHMAC returns the HMAC-SHA256 of the record without its signature, in
// hex.
func (r Record) computeHMAC(key []byte) (string, error) {
	r.Signature = ""
	data, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write(data) // never fails
	return hex.EncodeToString(mac.Sum(nil)), nil
}

package execution

import (
	"crypto/hkdf"
	"crypto/sha256"
)

// Derive gives 32 bytes that only this data directory has, for one use named by domain; the key
// they come from stays here. They are the same in every life, until digest.key is lost.
func (f *Fleet) Derive(domain string) ([]byte, error) {
	return hkdf.Key(sha256.New, f.key, nil, domain, sha256.Size)
}

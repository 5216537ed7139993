package execution

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"webcodex/internal/fault"
)

const (
	keyName = "digest.key"
	keyLen  = 32
)

// loadKey reads the key of the digests, or makes it at the first start. Without it a stored
// digest tells nothing about a command (faults.md 4).
func loadKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, keyName)
	key, err := os.ReadFile(path)
	switch {
	case err == nil && len(key) == keyLen:
		return key, nil
	case err == nil:
		return nil, fault.New(fault.LogDamaged, "the key file of the data directory is damaged").
			WithNext("remove digest.key; a new one is made")
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fault.Wrap(err, fault.Unavailable, "the key file of the data directory cannot be read")
	}
	key = make([]byte, keyLen)
	rand.Read(key)
	if err := writeKey(path, key); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "the key file of the data directory cannot be written")
	}
	return key, nil
}

func writeKey(path string, key []byte) error {
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(key)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

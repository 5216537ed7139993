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

// LostKey says what it means that the key is gone where there was one.
const LostKey = "what the log tells of earlier commands can no longer be compared with their text, and cursors and fences that callers hold from before are refused; Runners in other processes have to be enrolled again; nothing else depends on digest.key"

// loadKey reads the key of the digests, or makes it where there is none: at the first start, and
// when it was lost; fresh tells. Without it a stored digest tells nothing about a command
// (faults.md 4).
func loadKey(dir string) (key []byte, fresh bool, err error) {
	key, err = readKey(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, false, err
	}
	key = make([]byte, keyLen)
	rand.Read(key)
	if err := writeKey(dir, key); err != nil {
		return nil, false, fault.Wrap(err, fault.Unavailable, "the key file of the data directory cannot be written")
	}
	return key, true, nil
}

// HasKey tells whether a data directory has a key of the digests, sound or not.
func HasKey(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, keyName))
	return !errors.Is(err, fs.ErrNotExist)
}

// CheckKey tells whether a data directory's key of the digests can be used; one that is not
// there yet can. It changes nothing.
func CheckKey(dir string) error {
	_, err := readKey(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// readKey reads the key. Errors: fs.ErrNotExist where there is none; log_damaged.
func readKey(dir string) ([]byte, error) {
	key, err := os.ReadFile(filepath.Join(dir, keyName))
	switch {
	case err == nil && len(key) == keyLen:
		return key, nil
	case err == nil:
		return nil, fault.New(fault.LogDamaged, "the key file of the data directory is damaged").
			WithNext("remove digest.key; a new one is made")
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return nil, fault.Wrap(err, fault.Unavailable, "the key file of the data directory cannot be read")
}

// writeKey makes the key durable: what is digested with it outlives a power cut.
func writeKey(dir string, key []byte) error {
	path := filepath.Join(dir, keyName)
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
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

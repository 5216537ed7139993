package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"webcodex/eventlog/event"
)

// settings is what a data directory remembers between runs, chosen once and kept: hosts are
// configured with it (shapes.md 2, ruling 15). It lies in settings.json.
type settings struct {
	Client event.ClientID `json:"client_id"`
	// Port is the one hosts know; 0 until the first `up` took one.
	Port int `json:"port"`
}

const settingsFile = "settings.json"

// loadSettings reads them, and mints the client id at first use.
func loadSettings(dir string) (settings, error) {
	s, err := readSettings(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	var b [4]byte
	rand.Read(b[:])
	s.Client = event.ClientID(hex.EncodeToString(b[:]))
	return s, s.save(dir)
}

// readSettings changes nothing; fs.ErrNotExist where there are none yet.
func readSettings(dir string) (settings, error) {
	var s settings
	body, err := os.ReadFile(filepath.Join(dir, settingsFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, err
	case err != nil:
		return s, failf(exitFailed, "%s cannot be read: %v", settingsFile, short(err))
	}
	if err := json.Unmarshal(body, &s); err != nil || !s.Client.Valid() || s.Port < 0 || s.Port > 65535 {
		return s, failf(exitFailed, "%s in the data directory is damaged: put it back from a copy", settingsFile)
	}
	return s, nil
}

func (s settings) save(dir string) error {
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := writeDurably(filepath.Join(dir, settingsFile), append(body, '\n')); err != nil {
		return failf(exitFailed, "%s cannot be written: %w", settingsFile, short(err))
	}
	return nil
}

// writeDurably replaces a file so that a crash leaves the old or the new one, 0600.
func writeDurably(path string, body []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(body)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

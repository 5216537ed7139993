package main

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"webcodex/eventlog/event"
	link "webcodex/runner/link/client"
	"webcodex/runner/wire"
)

// enrolment is what a Runner's data directory holds of its server: who it is, and the Runner's own
// secret. The file is 0600 and never leaves this machine.
type enrolment struct {
	Client event.ClientID    `json:"client_id"`
	URL    string            `json:"server"`
	Server ed25519.PublicKey `json:"server_key"`
	Pin    []byte            `json:"certificate_pin,omitempty"`
	Seed   []byte            `json:"seed"`
	// Code is the public part of the code that it was made with, so that the same code goes on
	// where an answer was lost.
	Code []byte `json:"code"`
}

const (
	enrolmentFile = "enrolment.json"
	// enrollingFile is an enrolment that the server has not confirmed yet.
	enrollingFile = "enrolment.new.json"
)

// String keeps the secret out of whatever prints it.
func (e enrolment) String() string { return "enrolment of " + string(e.Client) }

func (e enrolment) remote(logger *slog.Logger) link.Remote {
	return link.Remote{URL: e.URL, Pin: e.Pin, Server: e.Server, Client: e.Client, Seed: e.Seed, Logger: logger}
}

// readEnrolment gives what a file holds; fs.ErrNotExist where there is none. With an error it may
// still tell whose it is, and its secret is not to be used.
func readEnrolment(dir, name string) (enrolment, error) {
	var e enrolment
	path := filepath.Join(dir, name)
	body, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return e, err
	case err != nil:
		return e, failf(exitAccess, "%s cannot be read: %v", name, short(err))
	}
	damaged := json.Unmarshal(body, &e) != nil
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
		return e, failf(exitAccess, "others may read %s, which holds this Runner's secret: `chmod 600` it, or enrol again with a new code", name)
	}
	if damaged || !e.Client.Valid() || len(e.Server) != ed25519.PublicKeySize || len(e.Seed) == 0 {
		return e, failf(exitFailed, "%s in the Runner's data directory is damaged: enrol this Runner again with a new code", name)
	}
	return e, nil
}

func (e enrolment) save(dir, name string) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if err := writeDurably(filepath.Join(dir, name), append(body, '\n')); err != nil {
		return failf(exitFailed, "%s cannot be written: %w", name, short(err))
	}
	return nil
}

// enrol makes a key for this Runner and has the server take it. Done again with the same code
// after a lost answer it goes on with the same key.
func enrol(ctx context.Context, dir, text, server string, logger *slog.Logger) (enrolment, error) {
	code, err := wire.ParseCode(text)
	if err != nil {
		return enrolment{}, err
	}
	have, err := readEnrolment(dir, enrolmentFile)
	if have.Client.Valid() && have.Client != code.Client {
		return enrolment{}, usagef("this data directory belongs to the Runner %s, and the code is for %s: name another directory with --data", have.Client, code.Client)
	}
	if err != nil { // there is none, or a new code is what mends it: its secret is used no more
		have.Seed = nil
	}
	mark := ed25519.NewKeyFromSeed(code.Seed[:]).Public().(ed25519.PublicKey)
	next := enrolment{Client: code.Client, URL: code.URL, Server: code.Server, Pin: code.Pin, Code: mark}
	if server != "" {
		next.URL = server
	}
	if next.URL == "" {
		return enrolment{}, usagef("the code tells no address of the server: name it with --server, for example tls://HOST:PORT")
	}
	if err := link.CheckURL(next.URL); err != nil {
		return enrolment{}, err
	}
	if begun, err := readEnrolment(dir, enrollingFile); err == nil && mark.Equal(ed25519.PublicKey(begun.Code)) {
		next.Seed = begun.Seed
	} else if have.Seed != nil && mark.Equal(ed25519.PublicKey(have.Code)) {
		next.Seed = have.Seed
	} else if next.Seed, err = link.NewSeed(); err != nil {
		return enrolment{}, err
	}
	if err := next.save(dir, enrollingFile); err != nil {
		return enrolment{}, err
	}
	if err := link.Enrol(ctx, code, next.remote(logger), thisBuild().String()); err != nil {
		return enrolment{}, err
	}
	if err := next.save(dir, enrolmentFile); err != nil {
		return enrolment{}, err
	}
	_ = os.Remove(filepath.Join(dir, enrollingFile)) // the next one overwrites it
	return next, nil
}

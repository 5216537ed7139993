package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// pair writes a certificate with its key.
func pair(t *testing.T, cert, key string, serial int64) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, public, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The operator's certificate is read again when it changes, and what was read goes on while a new
// one is half written; files that are no pair are refused at the start.
func TestCertificateOfTheOperator(t *testing.T) {
	t.Parallel()
	cert, key := filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	pair(t, cert, key, 1)
	c := RunnersConfig{Listen: "127.0.0.1:0", TLSCert: cert, TLSKey: key}
	s := &server{}
	if _, err := s.listenFor(c); err != nil {
		t.Fatal(err)
	}
	serial := func() int64 {
		t.Helper()
		got, err := s.identity.certificate()
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(got.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return leaf.SerialNumber.Int64()
	}
	touch := func(after time.Duration) {
		t.Helper()
		if err := os.Chtimes(cert, time.Now().Add(after), time.Now().Add(after)); err != nil {
			t.Fatal(err)
		}
	}
	if n := serial(); n != 1 {
		t.Errorf("serial %d", n)
	}
	pair(t, cert, key, 2)
	touch(time.Hour)
	if n := serial(); n != 2 {
		t.Errorf("after a renewal serial %d", n)
	}
	if err := os.WriteFile(cert, []byte("-----BEGIN"), 0o600); err != nil {
		t.Fatal(err)
	}
	touch(2 * time.Hour)
	if n := serial(); n != 2 {
		t.Errorf("while it is written serial %d", n)
	}
	for name, bad := range map[string]RunnersConfig{"no pair": {Listen: "127.0.0.1:0", TLSCert: cert, TLSKey: key}, "no key": {TLSCert: cert},
		"no certificate": {TLSKey: key}, "not there": {TLSCert: filepath.Join(t.TempDir(), "x"), TLSKey: key}} {
		if _, err := (&server{}).listenFor(bad); codeOf(err) != exitUsage || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for listen, want := range map[string]way{"": {}, "0.0.0.0:1": {addr: "0.0.0.0:1"}, "tls://box:2": {addr: "box:2"}, "nats://127.0.0.1:3": {addr: "127.0.0.1:3", plain: true},
		"nats://localhost:4": {addr: "localhost:4", plain: true}} {
		if got, err := (RunnersConfig{Listen: listen}).address(); err != nil || got != want {
			t.Errorf("%s: %+v %v", listen, got, err)
		}
	}
	for _, listen := range []string{"box", "nats://box:1", "nats://0.0.0.0:1", "http://127.0.0.1:1", "nats://[::]:1", ":"} {
		if got, err := (RunnersConfig{Listen: listen}).address(); err == nil {
			t.Errorf("%s: %+v", listen, got)
		}
	}
}

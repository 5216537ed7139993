package relpath

import "testing"

func TestSensitive(t *testing.T) {
	for p, want := range map[string]bool{
		".env": true, "app/.env.production": true, ".env.example": false, ".envrc": false, "env": false,
		"deploy/ID_RSA": true, "id_rsa.pub": false, "certs/server.key": true, "a.PEM": true, "keys.go": false,
		".ssh/config": true, "x/.aws/anything": true, "config/secrets.yml": true, "secrets.go": false, "credentials": true,
		"credentials_test.go": false, ".npmrc": true, "key": false, "": false,
	} {
		if got := Sensitive(p); got != want {
			t.Errorf("%q: %v", p, got)
		}
	}
}

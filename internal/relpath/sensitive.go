package relpath

import (
	"path"
	"strings"
)

// Sensitive reports whether a slash-separated path is one where secrets usually lie: keys,
// credentials, environments. It goes by names alone, and in any case.
func Sensitive(p string) bool {
	p = strings.ToLower(p)
	for part := range strings.SplitSeq(p, "/") {
		switch part {
		case ".ssh", ".gnupg", ".aws", ".azure", ".kube":
			return true
		}
	}
	name := path.Base(p)
	switch name {
	case ".netrc", "_netrc", ".npmrc", ".pypirc", ".htpasswd", ".pgpass", ".git-credentials", ".dockercfg", "credentials",
		"credentials.json", "credentials.yml", "credentials.yaml", "secrets.json", "secrets.yml", "secrets.yaml", "secrets.toml":
		return true
	}
	if name == ".env" || strings.HasPrefix(name, ".env.") {
		return !oneOf(path.Ext(name), ".example", ".sample", ".template", ".dist")
	}
	if oneOf(name, "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk") {
		return true
	}
	return oneOf(path.Ext(name), ".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk")
}

func oneOf(s string, list ...string) bool {
	for _, l := range list {
		if s == l {
			return true
		}
	}
	return false
}

package gitops

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"

	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// cursor says where a page of a diff begins and proves that what came before is still the
// same. It holds no path and no text.
type cursor struct {
	Version int    `json:"v"`
	Kind    string `json:"k"` // diff or hunks
	Scope   string `json:"s"`
	At      int64  `json:"n"` // bytes of a diff, items of hunks
	Before  string `json:"h"` // sum of all before
}

const (
	cursorVersion = 1
	cursorDiff    = "diff"
	cursorHunks   = "hunks"
)

func scopeSum(s wire.DiffScope) string {
	b, _ := json.Marshal(s)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

func (c cursor) String() string {
	b, _ := json.Marshal(c)
	return base64.RawURLEncoding.EncodeToString(b)
}

// readCursor decodes a continuation for this kind and scope; empty is the beginning.
func readCursor(text, kind string, s wire.DiffScope) (cursor, error) {
	c := cursor{Version: cursorVersion, Kind: kind, Scope: scopeSum(s)}
	if text == "" {
		return c, nil
	}
	var got cursor
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(b, &got)
	}
	if err != nil || len(text) > maxCursorBytes || got.Version != cursorVersion || got.Kind != kind || got.At <= 0 {
		return c, fault.New(fault.InvalidArguments, "the continuation is not one that this tool gave").WithField("continuation")
	}
	if got.Scope != c.Scope {
		return c, fault.New(fault.InvalidArguments, "the continuation belongs to a call with other paths or commits").
			WithField("continuation").WithReason("continuation_scope")
	}
	return got, nil
}

// stale refuses to go on in a diff that is no longer what its first pages showed.
func stale() error {
	f := fault.New(fault.InvalidArguments, "the diff changed since the page before").WithField("continuation").
		WithReason("continuation_stale").WithNext("call again without continuation")
	f.Recovery = fault.ReRead
	return f
}

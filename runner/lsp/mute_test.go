package lsp

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// muteServer shakes hands and then says nothing more.
const muteServer = `#!/bin/sh
read -r line
text='{"jsonrpc":"2.0","id":1,"result":{"capabilities":{"documentSymbolProvider":true}}}'
printf 'Content-Length: %d\r\n\r\n%s' "${#text}" "$text"
exec cat 3>&1 >/dev/null
`

// A server that hangs is ended once it has said nothing for long enough, and the next call starts
// another; before that it is left to its work.
func TestServerThatHangsIsStartedAnew(t *testing.T) {
	program := filepath.Join(t.TempDir(), "mute")
	if err := os.WriteFile(program, []byte(muteServer), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("WEBCODEX_GOPLS", program)
	w := newWorld(t, map[string]string{"a.go": "package a\n"})
	ask := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := w.s.documentSymbols(ctx, w.p, wire.NavigateIn{Path: "a.go"})
		if fault.KindOf(err) != fault.LSPRequestTimeout {
			t.Fatal(err)
		}
	}
	server := func() *provider {
		w.s.mu.Lock()
		defer w.s.mu.Unlock()
		for _, e := range w.s.running {
			return e.p
		}
		return nil
	}
	// The handshake, without a bound that a busy machine would miss.
	first, done, err := w.s.use(t.Context(), w.p, kinds[0])
	if err != nil {
		t.Fatal(err, fault.As(err).Unwrap())
	}
	done()
	ask()
	if ask(); server() != first {
		t.Error("a server that is only slow was ended")
	}
	first.mu.Lock()
	first.patience = time.Millisecond
	first.mu.Unlock()
	ask()
	<-first.dead
	next, done, err := w.s.use(t.Context(), w.p, kinds[0])
	if err != nil {
		t.Fatal(err)
	}
	done()
	if next == first {
		t.Error("the hanging server is used again")
	}
}

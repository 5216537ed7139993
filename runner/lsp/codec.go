package lsp

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"strconv"
)

// codec frames messages as the protocol does, and holds a server to bounds: it may be any program.
type codec struct{}

var errTooLarge = errors.New("a message of the language server is too large")

// WriteObject implements jsonrpc2.ObjectCodec.
func (codec) WriteObject(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "Content-Length: %d\r\n\r\n", len(b)); err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// ReadObject implements jsonrpc2.ObjectCodec.
func (codec) ReadObject(r *bufio.Reader, v any) error {
	size := -1
	for lines := 0; ; lines++ {
		line, err := readLine(r)
		if err != nil {
			return err
		}
		if line == "" {
			break
		}
		name, value, ok := cutHeader(line)
		if !ok || lines > 16 {
			return errors.New("the language server does not speak the protocol")
		}
		if name == "Content-Length" {
			if size, err = strconv.Atoi(value); err != nil || size < 0 {
				return errors.New("the language server gives no length")
			}
		}
	}
	switch {
	case size < 0:
		return errors.New("the language server gives no length")
	case size > maxMessage:
		return errTooLarge
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(r, b); err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// readLine is one header line without its end.
func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		b, err := r.ReadByte()
		if err != nil {
			return "", err
		}
		if b == '\n' {
			break
		}
		if line = append(line, b); len(line) > maxHeader {
			return "", errTooLarge
		}
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return string(line), nil
}

func cutHeader(line string) (name, value string, ok bool) {
	for i := range len(line) {
		if line[i] == ':' {
			return textproto.CanonicalMIMEHeaderKey(textproto.TrimString(line[:i])), textproto.TrimString(line[i+1:]), true
		}
	}
	return "", "", false
}

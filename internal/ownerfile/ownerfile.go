package ownerfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/BurntSushi/toml"
)

// Stamp tells whether a file may have changed. The zero value is that of a file that is not there.
type Stamp struct {
	there bool
	size  int64
	at    time.Time
	info  fs.FileInfo
}

// StampOf looks at a file.
func StampOf(path string) Stamp {
	info, err := os.Stat(path)
	if err != nil {
		return Stamp{}
	}
	return Stamp{there: true, size: info.Size(), at: info.ModTime(), info: info}
}

// Same says that the file was not changed between two looks.
func (s Stamp) Same(o Stamp) bool {
	return s.there == o.there && s.size == o.size && s.at.Equal(o.at) && (!s.there || os.SameFile(s.info, o.info))
}

// Read gives the text of a file of at most max bytes. One that is not there, or has no name, is
// empty; one that is no regular file, or that others may write, is an error.
func Read(path string, max int) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO would wait for its writer
	if path == "" || errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", errors.New("it cannot be opened")
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", errors.New("it cannot be looked at")
	case !info.Mode().IsRegular():
		return "", errors.New("it is no regular file")
	case info.Mode().Perm()&0o022 != 0:
		return "", errors.New("others may write it: chmod go-w")
	}
	raw, err := io.ReadAll(io.LimitReader(f, int64(max)+1))
	switch {
	case err != nil:
		return "", errors.New("it cannot be read")
	case len(raw) > max:
		return "", fmt.Errorf("it has more than %d bytes", max)
	}
	return string(raw), nil
}

// Decode reads a text strictly: a key that into has no member for is an error.
func Decode(text string, into any) error {
	meta, err := toml.Decode(text, into)
	if err != nil {
		var p toml.ParseError
		if errors.As(err, &p) {
			return fmt.Errorf("line %d is no TOML or has a value of another kind", p.Position.Line)
		}
		return errors.New("a value is of another kind")
	}
	if extra := meta.Undecoded(); len(extra) > 0 {
		return fmt.Errorf("%s is no setting of it", extra[0])
	}
	return nil
}

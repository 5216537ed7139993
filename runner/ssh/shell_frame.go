package ssh

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"
)

// frame is what the shell says.
type frame struct {
	status  int
	streams [2]kept
	final   bool // the shell has ended
}

// kept is the end of a stream.
type kept struct {
	total int64
	text  []byte
}

var errShellDamaged = errors.New("something else than an answer came")

// listen reads the channel until it ends. ready gets the keeper's first words: what the login has
// printed comes before them, and nothing that is not asked for after them.
func (s *remoteShell) listen(ready chan<- []string) {
	in := bufio.NewReaderSize(s.c.channel, maxLine)
	err := s.hello(in, ready)
	for err == nil {
		err = s.hear(in)
	}
	s.mu.Lock()
	s.exit.Damaged = errors.Is(err, errShellDamaged)
	s.exit.Lost = !s.exit.Damaged && s.exit.Code == nil
	s.exit.Unknown = s.exit.Code == nil
	s.mu.Unlock()
	close(s.gone)
	s.c.Close()
}

func (s *remoteShell) hello(in *bufio.Reader, ready chan<- []string) error {
	for {
		line, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if _, words, ok := strings.Cut(string(line), s.token+" "); ok {
			ready <- strings.Fields(words)
			return nil
		}
	}
}

// hear takes one frame.
func (s *remoteShell) hear(in *bufio.Reader) error {
	line, err := in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return errShellDamaged
	}
	if err != nil {
		return err
	}
	token, rest, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
	s.mu.Lock()
	expect, ended := s.expect, s.exit.Code != nil
	s.mu.Unlock()
	if code, ok := strings.CutPrefix(rest, wordEnd+" "); ok && token == s.token {
		n, err := strconv.Atoi(code)
		if err != nil || ended {
			return errShellDamaged
		}
		s.mu.Lock()
		s.exit.Code = &n
		s.mu.Unlock()
		return nil
	}
	f := frame{final: ended}
	switch {
	case ended && token == s.token:
	case !ended && expect != "" && token == expect:
	default:
		return errShellDamaged
	}
	if rest != "" {
		if err := f.read(in, rest); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.expect = ""
	s.mu.Unlock()
	select {
	case s.frames <- f:
	default:
	}
	return nil
}

// read takes the streams that an answer announces.
func (f *frame) read(in io.Reader, words string) error {
	var n [5]int64
	fields := strings.Fields(words)
	if len(fields) != len(n) {
		return errShellDamaged
	}
	for i, word := range fields {
		var err error
		if n[i], err = strconv.ParseInt(word, 10, 64); err != nil || n[i] < 0 {
			return errShellDamaged
		}
	}
	f.status = int(n[0])
	for i := range f.streams {
		total, size := n[1+2*i], n[2+2*i]
		if size > maxAnswer || size > total {
			return errShellDamaged
		}
		f.streams[i] = kept{total, make([]byte, size)}
		if _, err := io.ReadFull(in, f.streams[i].text); err != nil {
			return err
		}
	}
	return nil
}

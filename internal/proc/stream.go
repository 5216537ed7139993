package proc

import (
	"os"
	"sync"
)

// pipes opens the child's three streams and keeps the other ends.
func (p *Process) pipes() (child []*os.File, err error) {
	defer func() {
		if err != nil {
			for _, f := range child {
				_ = f.Close()
			}
			p.closePipes()
		}
	}()
	if p.c.Interactive {
		t, slave, err := openTerminal(p.c.OnWaiting)
		if err != nil {
			return nil, err
		}
		p.term, p.readers[0] = t, t.master
		return []*os.File{slave, slave, slave}, nil
	}
	if len(p.c.Stdin) == 0 {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return nil, err
		}
		child = append(child, null)
	} else {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		child, p.stdin = append(child, r), w
	}
	for i := range p.readers {
		r, w, err := os.Pipe()
		if err != nil {
			return child, err
		}
		child, p.readers[i] = append(child, w), r
	}
	return child, nil
}

func (p *Process) closePipes() {
	for _, f := range []*os.File{p.stdin, p.readers[0], p.readers[1]} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// follow starts what runs beside the child: its input, its output, its end.
func (p *Process) follow() {
	if p.stdin != nil {
		go func() {
			_, _ = p.stdin.Write(p.c.Stdin)
			_ = p.stdin.Close()
		}()
	}
	streams := []*Tail{p.c.Stdout, p.c.Stderr}
	if p.term != nil {
		streams = streams[:1]
		go p.watch(p.cell)
	}
	p.open.Store(int32(len(streams)))
	for i, to := range streams {
		tee := p.c.Tee
		if i == 1 {
			tee = p.c.TeeErr
		}
		go func() {
			drain(p.readers[i], to, tee, p.c.Notify)
			if p.open.Add(-1) == 0 {
				close(p.drained)
			}
		}()
	}
	go func() { waitExit(p.pid); close(p.exited) }()
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

func drain(from *os.File, to *Tail, tee func([]byte), notify func()) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	for {
		n, err := from.Read(*buf)
		if n > 0 {
			to.Write((*buf)[:n])
			if tee != nil {
				tee((*buf)[:n])
			}
			if notify != nil {
				notify()
			}
		}
		if err != nil {
			return
		}
	}
}

package runner

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"webcodex/internal/fault"
	"webcodex/internal/proc"
	"webcodex/internal/relpath"
	"webcodex/runner/wire"
)

// maxReport is what is read of a report file.
const maxReport = 16 << 20

// errWriter is a parser that reads standard error too.
type errWriter interface{ WriteErr(p []byte) }

// reportFile is where a validator writes for its parser, instead of to its standard output: a file
// of the Project that the caller names, or one of the Runner's own that the program is told. Nil:
// the output is read.
type reportFile struct {
	root   *os.Root
	name   string      // below root
	before os.FileInfo // what was there at the start; a file that is still the same is of another run
	own    string      // the Runner's own file
}

// newReport prepares the report of a run. It adds the argument that names a file of our own.
func (r *Runner) newReport(p *Project, in *wire.ProcessIn) (*reportFile, *fault.Error) {
	switch {
	case in.Report != "":
		parts, err := relpath.SplitFile(in.Report)
		if err != nil {
			return nil, fault.As(err).WithField("report")
		}
		f := &reportFile{root: p.Root, name: path.Join(append([]string{path.Clean(in.Cwd)}, parts...)...)}
		f.before, _ = p.Root.Stat(f.name)
		return f, nil
	case in.ReportArg != "":
		file, err := r.scripts.write("", ".xml")
		if err != nil {
			return nil, fault.Wrap(err, fault.CommandSpawnFailed, "a file for the report could not be made").WithReason(proc.NoResources)
		}
		in.Args = append(append([]string{}, in.Args...), in.ReportArg+file)
		return &reportFile{own: file}, nil
	}
	return nil, nil
}

// clean removes a file of our own.
func (f *reportFile) clean() {
	if f != nil && f.own != "" {
		_ = os.Remove(f.own)
	}
}

// listen gives a parser the streams that it reads.
func (f *reportFile) listen(c *proc.Command, p Parser) {
	if f == nil {
		c.Tee = p.Write
	}
	if w, ok := p.(errWriter); ok {
		c.TeeErr = w.WriteErr
	}
}

// read gives a parser the report, as far as this run has written one. It is false where the
// caller named a file and there is no report of this run in it: nobody knows what was tested.
func (f *reportFile) read(p Parser) bool {
	if f == nil || p == nil {
		return true
	}
	in, err := f.open()
	if err != nil {
		return f.own != ""
	}
	defer in.Close()
	buf := make([]byte, 64<<10)
	for left := maxReport + 1; left > 0; {
		n, err := in.Read(buf[:min(left, len(buf))])
		p.Write(buf[:n])
		if left -= n; err != nil {
			break
		}
	}
	return true
}

// noReport is told where a run has left none.
var noReport = wire.Diagnostic{Kind: "report_missing", Message: "this run wrote no report where one was to be: it is not there, is no regular file, or is of another run"}

var errOldReport = errors.New("the report is not of this run")

func (f *reportFile) open() (io.ReadCloser, error) {
	if f.own != "" {
		return os.OpenFile(f.own, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	}
	in, err := f.root.OpenFile(f.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := in.Stat()
	if err == nil && (!info.Mode().IsRegular() || f.before != nil && same(f.before, info)) {
		err = errOldReport
	}
	if err != nil {
		in.Close()
		return nil, err
	}
	return in, nil
}

// same reports whether two looks saw one file with one content, as far as size and time tell.
func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

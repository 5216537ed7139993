package eventlog

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// request asks and reports whether anybody answered in time.
func request(nc *nats.Conn, subject string) bool {
	_, err := nc.Request(subject, []byte("x"), 300*time.Millisecond)
	return err == nil
}

func answer(t *testing.T, nc *nats.Conn, subject string) {
	t.Helper()
	if _, err := nc.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond([]byte("ok")) }); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
}

// A Runner reaches exactly its own subjects: not another Runner's, not the log, not
// JetStream, and nobody else's replies.
func TestRunnerBusReachesItsOwnSubjectsOnly(t *testing.T) {
	t.Parallel()
	l := open(t, t.TempDir())
	srv, err := l.ServerBus()
	if err != nil {
		t.Fatal(err)
	}
	a, err := l.RunnerBus("a")
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.RunnerBus("b")
	if err != nil {
		t.Fatal(err)
	}
	answer(t, srv, "wc.run.*.*")
	for _, verb := range runnerSends {
		if !request(a, "wc.run.a."+verb) {
			t.Errorf("a may not send its own %s", verb)
		}
	}
	for _, subject := range []string{"wc.run.b.hello", "wc.run.a.offer", "wc.log.0.session.x", "$JS.API.INFO", "$JS.API.STREAM.DELETE.LOG", "$SYS.REQ.SERVER.PING"} {
		if request(a, subject) {
			t.Errorf("a got an answer on %s", subject)
		}
	}
	for _, verb := range serverSends {
		answer(t, a, "wc.run.a."+verb)
	}
	for _, verb := range serverSends {
		if !request(srv, "wc.run.a."+verb) {
			t.Errorf("the server got no answer to %s", verb)
		}
	}
	for _, subject := range []string{">", "wc.run.b.offer", "wc.run.*.offer", "_INBOX_a.>", "_INBOX.>", "wc.log.>"} {
		heard := make(chan *nats.Msg, 8)
		if _, err := b.ChanSubscribe(subject, heard); err != nil {
			continue
		}
		_ = b.Flush()
		if subject == "wc.run.b.offer" {
			continue
		}
		_ = request(a, "wc.run.a.hello")
		select {
		case m := <-heard:
			t.Errorf("b heard %q through %q", m.Subject, subject)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func TestRunnerBusRefusesAClientThatIsNoToken(t *testing.T) {
	l := open(t, t.TempDir())
	for _, c := range []string{"", "a.b", "*", ">", "A", "a b"} {
		if _, err := l.RunnerBus(event.ClientID(c)); fault.KindOf(err) != fault.InvalidArguments {
			t.Errorf("client %q: %v", c, err)
		}
	}
}

func TestBusIsClosedWithTheLog(t *testing.T) {
	l := open(t, t.TempDir())
	nc, err := l.ServerBus()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if !nc.IsClosed() {
		t.Error("the bus outlived the log")
	}
	if _, err := l.ServerBus(); fault.KindOf(err) != fault.ShuttingDown {
		t.Errorf("a bus after Close: %v", err)
	}
}

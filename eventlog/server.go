package eventlog

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// Accounts of the embedded server. Streams live in WC; Runners live in RUN, which has no
// JetStream; the global and the system account have no user.
const (
	accountLog = "WC"
	accountRun = "RUN"
)

// accountsConfig is text because the server offers no other way to mark an account for
// JetStream before it starts.
const accountsConfig = `accounts { ` + accountLog + ` { jetstream: enabled }, ` + accountRun + ` {} }`

// startServer runs the embedded server on a store directory. It listens on nothing but what
// Runners are to reach.
func startServer(store string, durability Durability, runners RunnerListen, auth *authority, log *serverLog) (*server.Server, error) {
	opts := &server.Options{}
	if err := opts.ProcessConfigString(accountsConfig); err != nil {
		return nil, fmt.Errorf("accounts: %w", err)
	}
	opts.ServerName = "webcodex"
	opts.DontListen = true
	opts.NoSigs = true
	opts.JetStream = true
	opts.StoreDir = store
	// The stream's own MaxBytes is the budget; this only must not be in its way.
	opts.JetStreamMaxStore = math.MaxInt64 / 4
	opts.JetStreamMaxMemory = 16 << 20
	opts.SyncInterval = syncInterval
	opts.SyncAlways = durability == Always
	opts.MaxPayload = maxPayload
	opts.CustomClientAuthentication = auth
	opts.AlwaysEnableNonce = true
	runners.set(opts)
	srv, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("embedded server: %w", err)
	}
	srv.SetLoggerV2(log, false, false, false)
	auth.server = srv
	srv.Start()
	if !srv.ReadyForConnections(startTimeout) || !srv.JetStreamEnabled() {
		srv.Shutdown()
		srv.WaitForShutdown()
		return nil, errors.New("embedded server: JetStream did not start")
	}
	return srv, nil
}

// serverLog passes the server's log on. A write error is only ever told there: JetStream
// neither answers the publication nor counts itself as down.
type serverLog struct {
	log        *slog.Logger
	writeError func()
}

// Noticef and the others implement the server's logger. None of its lines holds a payload.
func (l *serverLog) Noticef(format string, v ...any) {
	l.log.Debug("jetstream", slog.String("text", fmt.Sprintf(format, v...)))
}

// Warnf is a notice too: what the server warns of after an unclean stop, the log's own check
// of its chain and checkpoint judges, in words for a person.
func (l *serverLog) Warnf(format string, v ...any) { l.Noticef(format, v...) }

// Errorf passes an error on and tells the log when the store cannot be written.
func (l *serverLog) Errorf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.log.Error("jetstream", slog.String("text", text))
	// The store begins it with a capital where its own background sync found the error.
	if lower := strings.ToLower(text); strings.Contains(lower, "critical write error") || strings.Contains(lower, "failed to store a msg") {
		l.writeError()
	}
}

// Fatalf passes a fatal error on; the server does not end the process.
func (l *serverLog) Fatalf(format string, v ...any) { l.Errorf(format, v...) }

// Debugf is silent.
func (l *serverLog) Debugf(string, ...any) {}

// Tracef is silent: a trace would hold payloads.
func (l *serverLog) Tracef(string, ...any) {}

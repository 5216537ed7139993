package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"webcodex/commands/aggregate"
	"webcodex/commands/history"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	kept "webcodex/projections/history"
)

// policy is the configured history as the pruner takes it.
func (c HistoryConfig) policy() history.Policy {
	return history.Policy{Tail: c.Policy == HistoryTail, MaxAge: c.MaxAge, MaxBytes: c.MaxBytes}
}

// newPruner makes what lets the log's beginning leave.
func newPruner(log *eventlog.Log, w *aggregate.Writer, m *models, p history.Policy, rate int64, logger *slog.Logger) *history.Pruner {
	tombstones := func(_ context.Context, a event.Aggregate) (int, []byte, bool, error) { return m.tombstones.Carry(a) }
	return history.NewPruner(history.Options{Log: log, Living: m.keeper, Ledger: m.kept, Writer: w, Policy: p, Pages: m.refs.Pages,
		Beyond: m.sessions.Overflowed, Now: time.Now, Logger: logger, Rate: rate,
		Carrier: history.NewCarrier(w, m.windows.Carry, m.sessions.Carry, m.known.Carry, m.tokens.Carry, m.runners.Carry, m.refs.Carry, m.external.Carry, tombstones)})
}

// startHistory prunes while the server lives; the function ends it and waits.
func (s *server) startHistory() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.pruner.Run(ctx, pruneTicks(ctx, s.pruner.Full))
	}()
	return func() { cancel(); <-done }
}

// pruneTicks ticks each history.Tick, and each history.FullTick while the log is too large.
func pruneTicks(ctx context.Context, full func() bool) <-chan time.Time {
	out := make(chan time.Time, 1)
	go func() {
		tick := time.NewTicker(history.FullTick)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case now := <-tick.C:
				if now.Sub(last) < history.Tick && !full() {
					continue
				}
				last = now
				select {
				case out <- now:
				default: // a round is under way
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

func (s *server) controlHistory(mux *http.ServeMux) {
	mux.HandleFunc("GET "+pathHistory, func(w http.ResponseWriter, _ *http.Request) {
		r, err := s.pruner.Report()
		answer(w, r, err)
	})
	mux.HandleFunc("POST "+pathHistory+"/confirm-clock", func(w http.ResponseWriter, r *http.Request) {
		err := s.pruner.ConfirmClock(r.Context())
		answer(w, struct{}{}, err)
	})
}

func historyCommand() command {
	return command{
		name: "history", short: "say what the log keeps, since when, and why",
		long: `The log keeps every change for forensic replay until it is older or larger than the history may be;
then its oldest blocks leave, and what is still alive is carried forward first. Works with and without a running server.
--confirm-clock says that the server's clock is right: after a step of more than a day nothing leaves for its age until
somebody looked. Without a server it tells what one would do that is started by the configuration file and the
variables alone: the flags of the last one are not known.`,
		setup: func(fs *flag.FlagSet) action {
			data, file, asJSON := dataFlag(fs), configFlag(fs), jsonFlag(fs)
			confirm := fs.Bool("confirm-clock", false, "the clock is right: let age decide again what leaves")
			return func(ctx context.Context, s streams, _ []string) error {
				dir, err := dataDir(*data)
				if err != nil {
					return err
				}
				if *confirm {
					if err := confirmClock(ctx, dir); err != nil {
						return err
					}
				}
				r, err := readHistory(ctx, dir, *file)
				if err != nil {
					return err
				}
				if *asJSON {
					return printJSON(s.out, r)
				}
				return showHistory(s.out, r)
			}
		},
	}
}

// readHistory asks the running server; without one the log itself tells.
func readHistory(ctx context.Context, dir, config string) (history.Report, error) {
	r, err := askHistory(ctx, dir)
	if !errors.Is(err, errNoServer) {
		return r, err
	}
	e, err := loadConfig(config, nil)
	if err != nil {
		return r, err
	}
	m := newModels(dir, 0, slog.New(slog.DiscardHandler))
	a, err := openLog(ctx, dir, eventlog.Options{Base: m.keeper})
	if err != nil {
		return r, err
	}
	defer a.close()
	return newPruner(a.log, nil, m, e.History.policy(), 0, nil).Report()
}

func askHistory(ctx context.Context, dir string) (r history.Report, err error) {
	c, err := connectControl(ctx, dir)
	if err != nil {
		return r, err
	}
	defer c.close()
	return r, c.get(ctx, pathHistory, nil, &r)
}

func confirmClock(ctx context.Context, dir string) error {
	c, err := connectControl(ctx, dir)
	if err == nil {
		defer c.close()
		var done struct{}
		return c.post(ctx, pathHistory+"/confirm-clock", struct{}{}, &done)
	}
	if !errors.Is(err, errNoServer) {
		return err
	}
	o, err := openOffline(ctx, dir)
	if err != nil {
		return err
	}
	return errors.Join(o.pruner.ConfirmClock(ctx), o.close())
}

func showHistory(w io.Writer, r history.Report) error {
	p := &page{w: w}
	p.linef("%s", policyText(r.Policy))
	f := r.Facts
	if f.Last > 0 {
		p.field("kept", fmt.Sprintf("commits %d to %d, since %s", f.First, f.Last, localTime(event.FormatTime(f.Since))))
	}
	p.field("log", fmt.Sprintf("%s in %d blocks; its oldest leave beyond %s", bytesText(r.Bytes), r.Blocks, bytesText(r.LimitBytes)))
	if k := r.Work; k.Rounds > 0 || k.Carried > 0 {
		p.field("carried", fmt.Sprintf("%d records, %s, so that %s could leave since the start", k.Carried, bytesText(k.CarriedBytes), bytesText(k.FreedBytes)))
	}
	if l := f.LastPrune; l != nil {
		p.field("last", fmt.Sprintf("%s, everything before commit %d left: %s", localTime(event.FormatTime(l.At)), l.FirstSeq, reasonText(l.Reason)))
	}
	p.field("next", nextText(r))
	if f.Step != nil {
		p.field("clock", fmt.Sprintf("it stepped from %s to %s at commit %d; if it is right: `webcodex history --confirm-clock`",
			localTime(event.FormatTime(f.Step.Before)), localTime(event.FormatTime(f.Step.After)), f.Step.Seq))
	} else if off := r.Now.Sub(f.Newest); f.Last > 0 && off.Abs() > kept.MaxStep {
		p.field("clock", fmt.Sprintf("the newest commit is of %s; the next one makes this a step that has to be confirmed", localTime(event.FormatTime(f.Newest))))
	}
	if r.Work.HeldBy != "" {
		p.field("held", fmt.Sprintf("the state of a record (%s) cannot be carried forward, so what it needs stays", plain(r.Work.HeldBy)))
	}
	if r.Work.Failed != "" {
		p.field("attention", "the last try broke off ("+plain(r.Work.Failed)+"); nothing was lost, it is tried again")
	}
	return p.err
}

func policyText(p history.Policy) string {
	switch {
	case p.Tail:
		return "history tail: only what Sessions still need is kept"
	case p.MaxAge > 0 && p.MaxBytes > 0:
		return fmt.Sprintf("history full: %s, at most %s", daysText(p.MaxAge), bytesText(p.MaxBytes))
	case p.MaxAge > 0:
		return "history full: " + daysText(p.MaxAge)
	}
	return "history full: as far as there is room"
}

func reasonText(reason string) string {
	switch reason {
	case history.ReasonAge:
		return "it was too old"
	case history.ReasonBytes:
		return "the log was too large"
	case history.ReasonTail:
		return "nothing needed it (history tail)"
	case history.ReasonOperator:
		return "a person asked for it"
	}
	return plain(reason)
}

func nextText(r history.Report) string {
	d := r.Decision
	switch {
	case r.Work.Running != "":
		return "now: " + reasonText(r.Work.Running)
	case d.Due():
		return "due: " + reasonText(d.Reason)
	case d.Hold == history.HoldClock:
		return "what is too old stays until the clock is confirmed"
	case d.Hold == history.HoldDailyShare:
		return "a day's share has left for its age; more may from " + localTime(event.FormatTime(d.Next)) + " on"
	case d.Hold == history.HoldLiving:
		return "what is alive takes more than the history may have: raise it, or close Sessions"
	case d.Hold == history.HoldDamage:
		return "nothing leaves a damaged log: `webcodex doctor` tells more"
	case d.Hold == history.HoldNewest:
		return "all there is lies in the block that is being written"
	case !d.Next.IsZero():
		return "nothing is due before " + localTime(event.FormatTime(d.Next))
	}
	return "nothing is due"
}

func bytesText(n int64) string { return size(uint64(max(0, n))) }

func daysText(d time.Duration) string {
	if d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	return d.String()
}

package main

import (
	"context"
	"errors"
	"fmt"

	"webcodex/eventlog"
	"webcodex/internal/fault"
	kept "webcodex/projections/history"
)

// checkLog asks the running server about its log, or reads the log through and checks every
// chain. It also gives what the log tells of the clock.
func checkLog(ctx context.Context, dir string) ([]check, kept.Facts) {
	if !hasLog(dir) {
		return []check{{"log", statusOK, "there is no log yet; `webcodex up` creates it", ""}}, kept.Facts{}
	}
	st, err := askStatus(ctx, dir)
	if err == nil {
		r, _ := askHistory(ctx, dir) // which ends between the two questions: no clock is told
		return judgeLog(st.Log, fmt.Sprintf("open in the running server (pid %d)", st.PID)), r.Facts
	}
	if !errors.Is(err, errNoServer) {
		return []check{{"log", statusFail, "the server of the data directory does not answer as it should: " + oneLine(err),
			"restart it with this version of webcodex"}}, kept.Facts{}
	}
	// The files are read first and alone; only a log in which all is well is opened.
	a, r := (*archive)(nil), eventlog.VerifyReport{}
	if r, err = checkOffline(ctx, dir); err == nil && len(r.Damaged) == 0 {
		a, err = openLog(ctx, dir, eventlog.Options{})
	}
	if err != nil {
		var x *exitError
		if errors.As(err, &x) && x.code == exitNoServer {
			return []check{{"log", statusWarn, oneLine(err), "try again when it has started or ended"}}, kept.Facts{}
		}
		return damageChecks("log", err), kept.Facts{}
	}
	if len(r.Damaged) > 0 {
		return blockChecks("log", r.Damaged), kept.Facts{}
	}
	defer a.close()
	checks := judgeLog(a.log.Status(), "read through and checked, no server runs")
	if r.EndUnknown {
		checks = append(checks, check{"log", statusWarn, endUnknown,
			"if commits that were acknowledged are missing, restore the newest backup; else start the server, it makes the file again from the log"})
	}
	return checks, a.told.Facts()
}

func judgeLog(st eventlog.Status, how string) []check {
	c := check{Name: "log", Status: statusOK, Detail: fmt.Sprintf("%d commits of %d records, %s of %s; %s; durability %s (%s), a power cut loses %s",
		st.Seq, st.Aggregates, size(uint64(max(0, st.Bytes))), size(uint64(max(0, st.MaxBytes))), how,
		st.Promise.Mode, plain(st.Promise.Reason), plain(st.Promise.CutLoses))}
	switch {
	case len(st.Damaged) > 0:
		d := st.Damaged[0]
		c.Status = statusFail
		c.Detail = fmt.Sprintf("%d of %d records are damaged, the first at commit %d (%s)", len(st.Damaged), st.Aggregates, d.Seq, plain(d.Reason))
		c.Fix = "keep the data directory as it is and restore it from a backup; other records go on"
	case st.Reason != "":
		c.Status, c.Detail = statusFail, "the log stopped writing: "+plain(st.Reason)
		c.Fix = "restart webcodex; it checks the log and goes on from what is durable"
		if class, bad := eventlog.ClassOf(st.Reason); bad {
			c.Fix = class.Repair
		}
	case st.Space == eventlog.SpaceReserve:
		c.Status, c.Fix = statusWarn, "the log is full but for its reserve, new work is refused: free some space"
	case st.TailLost:
		c.Status, c.Fix = statusWarn, "an unclean stop may have taken the newest commits: use --durability always or group to lose none"
	}
	return append([]check{c}, judgeEvidence(st.Evidence)...)
}

// oneLine is an error as a sentence.
func oneLine(err error) string {
	if f := (*fault.Error)(nil); errors.As(err, &f) {
		return f.Message
	}
	return err.Error()
}

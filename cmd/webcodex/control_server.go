package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"time"

	"webcodex/commands/access"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/session"
)

// controlHandler serves our own commands. The listener has checked the peer's account.
func (s *server) controlHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathProjects, func(w http.ResponseWriter, r *http.Request) {
		v, err := s.controlAdd(r)
		answer(w, v, err)
	})
	mux.HandleFunc("GET "+pathStatus, func(w http.ResponseWriter, _ *http.Request) { answer(w, s.status(), nil) })
	mux.HandleFunc("GET "+pathSessions, func(w http.ResponseWriter, r *http.Request) {
		v, err := sessionQueryOf(r.URL.Query()).page(s.store)
		answer(w, v, err)
	})
	mux.HandleFunc("GET "+pathReplay, s.controlReplay)
	mux.HandleFunc("GET "+pathVerify, s.controlVerify)
	mux.HandleFunc("GET "+pathAttach, s.controlAttach)
	s.controlTokens(mux)
	s.controlRunners(mux)
	mux.HandleFunc("GET "+pathBackup, s.controlBackup)
	s.controlHistory(mux)
	mux.Handle("/mcp", s.edge.SocketHandler())
	return s.use.wrap(mux)
}

func (s *server) controlAdd(r *http.Request) (added, error) {
	var in addProject
	if err := json.NewDecoder(io.LimitReader(r.Body, maxControlBody)).Decode(&in); err != nil || in.Path == "" {
		return added{}, fault.New(fault.InvalidArguments, "the request names no directory")
	}
	if have := s.log.Status().Durability; in.Durability != "" && in.Durability != have {
		return added{}, fault.New(fault.Conflict, "the server on this data directory runs with --durability %s, not %s: "+
			"end it first, leave the flag out, or name another directory with --data", have, in.Durability)
	}
	root, err := resolveDir(in.Path)
	if err != nil {
		return added{}, err
	}
	if err := keepApart(root, s.dir); err != nil {
		return added{}, err
	}
	project, err := s.addProject(r.Context(), root)
	if err != nil {
		return added{}, err
	}
	answer := s.ready(project)
	return added{ready: answer, PublicURL: answer.public, Durability: answer.durable}, nil
}

func (s *server) status() serverStatus {
	st := serverStatus{PID: os.Getpid(), Instance: string(s.instance), Build: thisBuild(), MCPURL: s.ready("").MCPURL, PublicURL: s.public,
		DataDir: s.dir, UptimeSecs: int64(time.Since(s.started).Seconds()), Projects: []string{}, Sessions: s.store.Totals().Sessions,
		Runners: len(s.fleet.Runners()), InFlight: s.kernel.InFlight(), Log: s.log.Status()}
	for _, p := range s.fleet.Projects() {
		if p.Connected {
			st.Projects = append(st.Projects, p.Project)
		}
	}
	if at := s.models.keeper.Status().LastCommit; !at.IsZero() {
		st.LastCommit = event.FormatTime(at)
	}
	if err := s.log.Admit(); err != nil {
		st.Refuses = fault.As(err).Message
	}
	st.Attention = s.attention()
	return st
}

// controlReplay streams one JSON line a commit and a last one that says that all was told;
// with at it answers the Session as it was.
func (s *server) controlReplay(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	id := event.SessionID(q.Get("session"))
	if at := q.Get("at"); at != "" {
		p, err := session.ParsePoint(at)
		if err != nil {
			answer(w, nil, err)
			return
		}
		if q.Get("view") == viewHandoff {
			h, err := handoffAsOf(r.Context(), s.log, id, p)
			answer(w, h, err)
			return
		}
		sum, err := asOf(r.Context(), s.log, id, p)
		answer(w, sum, err)
		return
	}
	enc, begun := json.NewEncoder(w), false
	err := steps(r.Context(), s.log, id, session.Point{}, func(l replayLine) error {
		begun = true
		return enc.Encode(l)
	})
	switch {
	case err != nil && !begun:
		answer(w, nil, err)
	case err != nil:
		_ = enc.Encode(replayTail{Error: oneLine(err)})
	default:
		_ = enc.Encode(replayTail{End: true})
	}
}

// controlAttach holds an answer open: the window of a host that sends nothing for hours
// still uses the server.
func (s *server) controlAttach(w http.ResponseWriter, r *http.Request) {
	answer(w, struct{}{}, nil)
	_ = http.NewResponseController(w).Flush()
	select {
	case <-r.Context().Done():
	case <-s.ending:
	}
}

// controlTokens serves the owner's commands on second principals. What a change ends has ended
// when its answer goes out.
func (s *server) controlTokens(mux *http.ServeMux) {
	mux.HandleFunc("GET "+pathTokens, func(w http.ResponseWriter, _ *http.Request) { answer(w, s.second.List(), nil) })
	mux.HandleFunc("POST "+pathTokens, func(w http.ResponseWriter, r *http.Request) {
		controlDo(s, w, r, func(in access.CreateIn) (access.Issued, error) { return s.second.Create(r.Context(), in) })
	})
	mux.HandleFunc("POST "+pathTokens+"/rotate", func(w http.ResponseWriter, r *http.Request) {
		controlDo(s, w, r, func(in access.RotateIn) (access.Issued, error) { return s.second.Rotate(r.Context(), in) })
	})
	mux.HandleFunc("POST "+pathTokens+"/revoke", func(w http.ResponseWriter, r *http.Request) {
		controlDo(s, w, r, func(in access.RevokeIn) (access.TokenView, error) { return s.second.Revoke(r.Context(), in) })
	})
}

func controlDo[In, Out any](s *server, w http.ResponseWriter, r *http.Request, do func(In) (Out, error)) {
	var in In
	if err := json.NewDecoder(io.LimitReader(r.Body, maxControlBody)).Decode(&in); err != nil {
		answer(w, nil, fault.New(fault.InvalidArguments, "the request cannot be read"))
		return
	}
	out, err := do(in)
	s.edge.Sweep()
	w.Header().Set("Cache-Control", "no-store")
	answer(w, out, err)
}

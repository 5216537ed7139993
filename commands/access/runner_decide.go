package access

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/redact"
	"webcodex/projections/access"
	"webcodex/runner/wire"
)

// NewRunner is a Runner's credential to be. Ids and the code's key come from the edge.
type NewRunner struct {
	ID            event.TokenID
	Client        event.ClientID
	Name          string
	Projects      []string
	Code          string
	CodeExpiresAt time.Time
}

// DecideInvite makes a Runner's credential, or says what is wrong with the request.
func DecideInvite(have []access.Runner, n NewRunner, now time.Time) ([]event.Event, error) {
	live := 0
	for _, k := range have {
		if k.RevokedAt.IsZero() {
			live++
		}
		if k.Client == n.Client {
			return nil, fault.New(fault.Conflict, "another Runner has this client id")
		}
	}
	if live >= MaxRunners {
		return nil, fault.New(fault.StorageFull, "there are %d Runners already", MaxRunners).WithNext("revoke one that nobody needs any more")
	}
	name := redact.Text(strings.TrimSpace(n.Name), MaxTokenName)
	if name == "" {
		return nil, bad("name", "give the Runner a name, so that you know it again")
	}
	projects, err := checkServed(n.Projects)
	if err != nil {
		return nil, err
	}
	if !n.Client.Valid() {
		return nil, bad("name", "no client id can be made of this name")
	}
	if err := checkCodeLife(n.CodeExpiresAt, now); err != nil {
		return nil, err
	}
	return []event.Event{event.RunnerInvited{Runner: n.ID, Client: n.Client, Name: name, Code: n.Code, CodeExpiresAt: stored(n.CodeExpiresAt),
		Projects: projects}}, nil
}

// servedForm is a Project's id, or a folder's name that can stand in a list.
var servedForm = regexp.MustCompile(`^[^\x00-\x1f,/\x7f]{1,120}$`)

func checkServed(names []string) ([]string, error) {
	if len(names) == 0 || len(names) == 1 && names[0] == allProjects {
		return nil, nil
	}
	if len(names) > MaxTokenProjects {
		return nil, bad("projects", "a Runner names at most "+strconv.Itoa(MaxTokenProjects)+" Projects")
	}
	out := slices.Clone(names)
	slices.Sort(out)
	for _, name := range out {
		if name == allProjects || !servedForm.MatchString(name) {
			return nil, bad("projects", "a Runner's Projects are named by the folder's name or the Project's id, or all")
		}
	}
	return slices.Compact(out), nil
}

func checkCodeLife(at, now time.Time) error {
	switch left := at.Sub(now); {
	case at.IsZero() || left > MaxCodeLife+time.Hour:
		return bad("expires", "a code is good for thirty days at most; the Runner's key is good until you revoke it")
	case left < minTokenLife:
		return bad("expires", "the code would have expired already")
	}
	return nil
}

// parseCodeLife is ParseExpiry with a code's default.
func parseCodeLife(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return end(now.Add(DefaultCodeLife)), nil
	}
	return ParseExpiry(s, now)
}

// DecideReinvite takes a Runner's key and gives it another code.
func DecideReinvite(k access.Runner, found bool, code string, at, now time.Time) ([]event.Event, error) {
	if !found || !k.RevokedAt.IsZero() {
		return nil, unknownToken()
	}
	if err := checkCodeLife(at, now); err != nil {
		return nil, err
	}
	return []event.Event{event.RunnerReinvited{Runner: k.ID, Code: code, CodeExpiresAt: stored(at)}}, nil
}

// DecideRunnerRevoke ends a Runner's credential; one that is revoked stays so without a second
// event.
func DecideRunnerRevoke(k access.Runner, found bool) ([]event.Event, error) {
	if !found {
		return nil, unknownToken()
	}
	if !k.RevokedAt.IsZero() {
		return nil, nil
	}
	return []event.Event{event.RunnerRevoked{Runner: k.ID}}, nil
}

// DecideEnrol takes a key in the place of a code. Errors: enrolment_code_invalid, _expired,
// _spent, _revoked.
func DecideEnrol(k access.Runner, found bool, have []access.Runner, m wire.Enrol, now time.Time) ([]event.Event, error) {
	renew := func(f *fault.Error) error {
		return f.WithNext("ask for a new one: `webcodex token rotate %s`", k.ID)
	}
	switch {
	case !found || k.Code != m.Code:
		return nil, fault.New(fault.EnrolmentInvalid, "the server knows no such code").WithNext("ask for a new one: `webcodex token create --kind runner`")
	case !k.RevokedAt.IsZero():
		return nil, fault.New(fault.EnrolmentRevoked, "this code was revoked").WithNext("ask for a new one: `webcodex token create --kind runner`")
	case k.Key != "" && k.Key == m.Key:
		return nil, nil // its answer was lost
	case k.Key != "":
		return nil, renew(fault.New(fault.EnrolmentSpent, "a Runner was enrolled with this code already"))
	case !now.Before(k.CodeExpiresAt):
		return nil, renew(fault.New(fault.EnrolmentExpired, "this code has expired"))
	}
	for _, other := range have {
		if other.Key == m.Key || other.Code == m.Key {
			return nil, fault.New(fault.EnrolmentInvalid, "this key is another Runner's").WithNext("enrol with a data directory of its own")
		}
	}
	return []event.Event{event.RunnerEnrolled{Runner: k.ID, Key: m.Key}}, nil
}

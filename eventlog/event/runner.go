package event

// RunnerInvited makes the credential of a Runner and lets one in: who holds the private part of
// Code may once put the Runner's own key in its place. No secret is in it.
type RunnerInvited struct {
	Runner TokenID  `json:"runner"`
	Client ClientID `json:"client"` // given once, never to another Runner
	Name   string   `json:"name"`   // for people, redacted, ≤ 80 characters
	// Code is the public key of the enrolment code, as nkeys write one.
	Code          string `json:"code"`
	CodeExpiresAt string `json:"code_expires_at"`
	// Projects are the ids or folder names of what it may serve; empty: whatever its operator
	// gives it.
	Projects []string `json:"projects,omitempty"`
}

// RunnerEnrolled spends the code: from here on this key is the Runner.
type RunnerEnrolled struct {
	Runner TokenID `json:"runner"`
	Key    string  `json:"key"` // public, as nkeys write one
}

// RunnerReinvited takes a Runner's key and makes a new code for it; its client id stays.
type RunnerReinvited struct {
	Runner        TokenID `json:"runner"`
	Code          string  `json:"code"`
	CodeExpiresAt string  `json:"code_expires_at"`
}

// RunnerRevoked ends a Runner's credential for good. What it did and its Projects' records stay.
type RunnerRevoked struct {
	Runner TokenID `json:"runner"`
}

func (RunnerInvited) isEvent()   {}
func (RunnerEnrolled) isEvent()  {}
func (RunnerReinvited) isEvent() {}
func (RunnerRevoked) isEvent()   {}

package event

// TokenID names the bearer token of a second principal. It is no secret and opens nothing.
type TokenID string

// TokenPrefix of a TokenID; 32 lowercase hex digits follow.
const TokenPrefix = "wc_tok_"

// NewTokenID mints an id for one token.
func NewTokenID() TokenID { return TokenID(mint(TokenPrefix)) }

// Valid reports whether t has the form of a minted token id.
func (t TokenID) Valid() bool { return minted(string(t), TokenPrefix) }

// TokenKind says which authority group the holder of a token belongs to (AUTH-04).
type TokenKind string

// Kinds of tokens.
const (
	// TokenUser is a managed user: an authority group of one.
	TokenUser TokenKind = "user"
	// TokenProject is a grant for named Projects: an authority group of its own.
	TokenProject TokenKind = "project"
	// TokenSharedKey is one of several that may be one authority group: its holders share
	// Sessions, each is a principal of its own.
	TokenSharedKey TokenKind = "shared-key"
)

// TokenCreated admits a second principal. Who holds the token whose hash this is acts as the
// principal; the token itself is shown once and stored nowhere.
type TokenCreated struct {
	Token TokenID   `json:"token"`
	Kind  TokenKind `json:"kind"`
	Name  string    `json:"name"` // for people, redacted, ≤ 80 characters; identifies nobody
	// Hash is a domain-separated SHA-256 of the token, 64 lowercase hex.
	Hash   string   `json:"hash"`
	Scopes []string `json:"scopes"`
	// AllProjects: every Project, those to come too. Else those named, and no other.
	AllProjects bool         `json:"all_projects,omitempty"`
	Projects    []ProjectRef `json:"projects,omitempty"`
	ExpiresAt   string       `json:"expires_at,omitempty"` // empty: never
	// Authority and Principal are the fingerprints that the holder's commits and Sessions carry
	// (AUTH-01). They outlive a rotation.
	Authority string `json:"authority"`
	Principal string `json:"principal"`
}

// TokenRotated gives the principal a new token; the old one is none from here on.
type TokenRotated struct {
	Token     TokenID `json:"token"`
	Hash      string  `json:"hash"`
	ExpiresAt string  `json:"expires_at,omitempty"`
}

// TokenRevoked ends a token for good. What its principal did and owns stays as it is.
type TokenRevoked struct {
	Token TokenID `json:"token"`
}

func (TokenCreated) isEvent() {}
func (TokenRotated) isEvent() {}
func (TokenRevoked) isEvent() {}

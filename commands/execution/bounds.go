package execution

import "time"

const (
	// offerWait is how long a Runner may take to say a word on an offer; it is asked twice.
	offerWait = 3 * time.Second
	// claimWait is how long after its word on an offer a Runner's claim may take.
	claimWait = 6 * time.Second
	// readyWait is how long a claim waits for the start commit; the Runner takes no later grant.
	readyWait = 4500 * time.Millisecond
	// cancelWait is how long a cancelled execution's end is waited for; ending a stubborn
	// process takes about three seconds.
	cancelWait = 8 * time.Second
	// ackWait is how long a result waits for the call's finish before the Runner is to repeat it.
	ackWait = 10 * time.Second
	// queryEvery is the pause between two questions to a Runner that does not answer.
	queryEvery = time.Second
	// askWait bounds one short question.
	askWait = 3 * time.Second
	// readMargin is what a read may take beyond the Runner's own limit.
	readMargin = 2 * time.Second
	// maxName bounds what a Runner says about itself, in characters.
	maxName = 120
)

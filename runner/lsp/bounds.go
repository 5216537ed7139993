package lsp

import "time"

const (
	// maxServers bounds the language servers of a Runner: the one unused for longest makes room.
	maxServers = 4
	// idleAfter is how long one stays without being asked.
	idleAfter = 10 * time.Minute
	// startWait bounds a server's start, requestWait one of its answers, loadWait how long a
	// request waits until it has read the Project, publishWait until it has looked at a new version.
	startWait   = 20 * time.Second
	requestWait = 25 * time.Second
	loadWait    = 15 * time.Second
	publishWait = 10 * time.Second
	// muteAfter is how long a server may say nothing at all while it is asked, before it is taken for
	// one that hangs: the next call starts another.
	muteAfter = 5 * time.Minute
	// exitWait is how long a server may take to end when it is asked to.
	exitWait = time.Second
	// failures within failureTime are how often a server may end by itself before it is left alone
	// for as long.
	failures    = 3
	failureTime = 2 * time.Minute

	// maxDocument bounds a file that a server is told of; maxOpen the files it is told of at once.
	maxDocument = 1 << 20
	maxOpen     = 32
	// maxNew is how many new files at once a server is told the text of, so that it takes notice; with
	// more it is started anew.
	maxNew = maxOpen / 2
	// maxWatched bounds the files that are looked at for changes, maxListed the entries on the way.
	maxWatched = 20_000
	maxListed  = 200_000
	// maxMessage bounds one message of a server, maxHeader a line before it.
	maxMessage = 16 << 20
	maxHeader  = 4 << 10
	// previewChars is what is shown of a line.
	previewChars = 200
	// maxText bounds a message, a detail or a name, in characters.
	maxText = 2_000
	maxName = 300
	// maxVersion bounds a version, in characters.
	maxVersion = 60
	// answerBytes bounds what an answer shows, on its JSON.
	answerBytes = 36_000
)

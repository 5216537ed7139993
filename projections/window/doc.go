// Package window folds the windows of each principal: what they related to, which windows know
// of each other, and the messages between them. None of it selects or authorises anything.
package window

// Package retention folds the tombstones of removed Sessions, in the order they were removed.
package retention

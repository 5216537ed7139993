// Package retention removes Closed Sessions beyond the bound of history.
package retention

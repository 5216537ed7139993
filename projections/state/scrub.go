package state

import (
	"context"
	"fmt"
	"strings"
)

// Scrub implements eventlog.Base: SQLite reads each table with its indexes and compares them.
// A row's own hash tells of a changed row when somebody reads it; an entry that an index lost
// shows only here, or where a reader misses what is counted elsewhere.
func (k *Keeper) Scrub(ctx context.Context) error {
	tables, err := k.texts(ctx, `SELECT name FROM sqlite_schema WHERE type = 'table'`)
	if err != nil {
		return err
	}
	for _, table := range tables { // one at a time: a long read holds up the write-ahead log
		said, err := k.texts(ctx, `PRAGMA integrity_check('`+strings.ReplaceAll(table, "'", "''")+`')`)
		if reason := reasonOf(err); reason == reasonDamaged {
			k.Spoiled(err)
			continue
		}
		if err != nil {
			return err
		}
		if len(said) != 1 || said[0] != "ok" {
			k.Spoiled(fmt.Errorf("%w: a table and its indexes differ", ErrRow))
		}
	}
	return nil
}

// texts are the rows of a query of one column.
func (k *Keeper) texts(ctx context.Context, query string) (out []string, err error) {
	rows, err := k.file.reads().QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

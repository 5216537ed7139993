package git

import (
	"bytes"
	"errors"
	"strconv"
)

func versionOf(out []byte) (v [2]int, err error) {
	fields := bytes.Fields(out)
	if len(fields) < 3 {
		return v, errors.New("no version in git's answer")
	}
	for i, part := range bytes.SplitN(fields[2], []byte("."), 3) {
		if i < len(v) {
			if v[i], err = strconv.Atoi(string(part)); err != nil {
				return v, err
			}
		}
	}
	return v, nil
}

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/BurntSushi/toml"
)

// maxConfigBytes bounds the file; it holds a dozen short lines.
const maxConfigBytes = 64 << 10

// Where a value is from, weakest first.
const (
	fromDefault = "default"
	fromFile    = "file"
	fromEnv     = "env"
	fromFlag    = "flag"
)

// effective is a Config with the origin of each of its values.
type effective struct {
	Config
	// file is the configuration file that was read, or that would be; read tells which.
	file string
	read bool
	from map[string]string // by key
}

// origin names where the value of a key is from, as a person would look for it.
func (e effective) origin(key string) string {
	s, _ := settingOf(key)
	switch e.from[key] {
	case fromFlag:
		return "--" + s.flag()
	case fromEnv:
		return s.env()
	case fromFile:
		return "the configuration file"
	}
	return fromDefault
}

// loadConfig puts the values together: a flag counts before a variable, a variable before the
// file, the file before the default. Every value is checked, those that do not count too.
func loadConfig(file string, flags map[string]string) (effective, error) {
	e := effective{Config: DefaultConfig(), from: map[string]string{}}
	values, err := e.readFile(file)
	if err != nil {
		return e, err
	}
	env := map[string]string{}
	for _, s := range configTable {
		if v := os.Getenv(s.env()); v != "" {
			env[s.key] = v
		}
	}
	for _, layer := range []struct {
		name   string
		values map[string]string
		called func(s setting) string
	}{
		{fromFile, values, func(s setting) string { return s.key + " in the configuration file" }},
		{fromEnv, env, setting.env},
		{fromFlag, flags, func(s setting) string { return "--" + s.flag() }},
	} {
		for _, s := range configTable {
			v, given := layer.values[s.key]
			if !given {
				continue
			}
			if err := s.set(&e.Config, v); err != nil {
				return e, usagef("%s: %s", layer.called(s), err)
			}
			e.from[s.key] = layer.name
		}
	}
	return e, nil
}

// readFile gives the file's values as text. A file that was named has to be there; the
// default one need not be.
func (e *effective) readFile(named string) (map[string]string, error) {
	path, must, err := configPath(named)
	if err != nil || path == "" {
		return nil, err
	}
	e.file = path
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO would wait for its writer
	switch {
	case errors.Is(err, fs.ErrNotExist) && !must:
		return nil, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, usagef("the configuration file is not there: create it, or leave --config and WEBCODEX_CONFIG out")
	case err != nil:
		return nil, failf(exitAccess, "the configuration file cannot be read: %v", short(err))
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, usagef("the configuration file is no regular file")
	}
	body, err := io.ReadAll(io.LimitReader(f, maxConfigBytes+1))
	switch {
	case err != nil:
		return nil, failf(exitAccess, "the configuration file cannot be read: %v", short(err))
	case len(body) > maxConfigBytes:
		return nil, usagef("the configuration file is larger than %d bytes", maxConfigBytes)
	}
	e.read = true
	return parseConfig(string(body))
}

// configPath is the file to read and whether it has to be there; empty where there is no
// place to look.
func configPath(named string) (path string, must bool, err error) {
	if named == "" {
		named = os.Getenv("WEBCODEX_CONFIG")
	}
	if named != "" {
		path, err = filepath.Abs(named)
		return path, true, err
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", false, nil // no home: no file
	}
	return filepath.Join(dir, "webcodex", "config.toml"), false, nil
}

// parseConfig reads TOML into the text of each value, by key. A key that is not in the table
// is an error that names it.
func parseConfig(body string) (map[string]string, error) {
	var tree map[string]any
	if _, err := toml.Decode(body, &tree); err != nil {
		var p toml.ParseError
		if errors.As(err, &p) {
			return nil, usagef("the configuration file is no TOML: line %d: %s", p.Position.Line, p.Message)
		}
		return nil, usagef("the configuration file is no TOML: %v", err)
	}
	out := map[string]string{}
	return out, flatten(tree, "", out)
}

func flatten(tree map[string]any, prefix string, out map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		v, key := tree[name], prefix+name
		if sub, ok := v.(map[string]any); ok && isTable(key) {
			if err := flatten(sub, key+".", out); err != nil {
				return err
			}
			continue
		}
		if _, known := settingOf(key); !known || strings.Contains(name, ".") {
			return usagef("the configuration file has the key %s, which is none: `webcodex config` lists them", strconv.Quote(key))
		}
		switch v := v.(type) {
		case string:
			out[key] = v
		case int64:
			out[key] = strconv.FormatInt(v, 10)
		default:
			return usagef("%s in the configuration file: a string or a whole number, not %s", key, kindOf(v))
		}
	}
	return nil
}

func isTable(key string) bool {
	return slices.ContainsFunc(configTable, func(s setting) bool { return strings.HasPrefix(s.key, key+".") })
}

func kindOf(v any) string {
	switch v.(type) {
	case bool:
		return "a boolean"
	case float64:
		return "a number with a fraction"
	case []any, []map[string]any:
		return "a list"
	case map[string]any:
		return "a table"
	}
	return fmt.Sprintf("a value of type %T", v)
}

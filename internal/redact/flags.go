package redact

import (
	"regexp"
	"slices"
	"strings"
)

// shortFlag is how a tool takes a secret by a short flag, which names nothing by itself.
type shortFlag struct {
	flags []string
	apart bool   // the next argument is the value, too
	after string // only behind this subcommand
	pair  bool   // the value is user:password
}

var (
	mysqlFlag = shortFlag{flags: []string{"-p"}} // its -p apart asks, and the next argument is a database
	mongoFlag = shortFlag{flags: []string{"-p"}, apart: true}
	sqlFlag   = shortFlag{flags: []string{"-P"}, apart: true}
	loginFlag = shortFlag{flags: []string{"-p"}, apart: true, after: "login"} // elsewhere -p is a port
	packFlag  = shortFlag{flags: []string{"-p", "-hp"}}
)

var shortFlags = map[string]shortFlag{
	"mysql": mysqlFlag, "mysqldump": mysqlFlag, "mysqladmin": mysqlFlag, "mysqlimport": mysqlFlag, "mysqlshow": mysqlFlag,
	"mysqlcheck": mysqlFlag, "mysqlpump": mysqlFlag, "mysqlbinlog": mysqlFlag, "mysqlslap": mysqlFlag, "mysqlsh": mysqlFlag,
	"mariadb": mysqlFlag, "mariadb-dump": mysqlFlag, "mariadb-admin": mysqlFlag, "mariadb-import": mysqlFlag,
	"mariadb-check": mysqlFlag, "mariadb-show": mysqlFlag,
	"sshpass": mongoFlag, "mongo": mongoFlag, "mongosh": mongoFlag, "mongodump": mongoFlag, "mongorestore": mongoFlag,
	"mongoexport": mongoFlag, "mongoimport": mongoFlag,
	"sqlcmd": sqlFlag, "bcp": sqlFlag, "tsql": sqlFlag, "zip": sqlFlag, "unzip": sqlFlag,
	"docker": loginFlag, "podman": loginFlag, "nerdctl": loginFlag,
	"7z": packFlag, "7za": packFlag, "7zz": packFlag, "rar": packFlag, "unrar": packFlag,
	"redis-cli":  {flags: []string{"-a"}, apart: true},
	"ldapsearch": {flags: []string{"-w"}, apart: true}, "ldapadd": {flags: []string{"-w"}, apart: true},
	"ldapmodify": {flags: []string{"-w"}, apart: true}, "ldapwhoami": {flags: []string{"-w"}, apart: true},
	"curl": {flags: []string{"-u"}, pair: true},
}

var (
	toolName = regexp.MustCompile(`[A-Za-z0-9][A-Za-z0-9_.-]*`)
	// portMap is what a short flag of a container tool takes.
	portMap = regexp.MustCompile(`^[0-9.]+:[0-9:.]+(?:/\w+)?$`)
)

// maxWords in a row that are neither flags nor a flag's value end a command: what follows is
// a sentence about the tool.
const maxWords = 2

func scrubFlags(s string) string {
	var out strings.Builder
	pos := 0
	for _, m := range toolName.FindAllStringIndex(s, -1) {
		if m[0] < pos {
			continue
		}
		f, known := shortFlags[strings.TrimSuffix(strings.ToLower(s[m[0]:m[1]]), ".exe")]
		if !known {
			continue
		}
		for _, v := range f.values(s, m[1]) {
			out.WriteString(s[pos:v[0]])
			out.WriteString(Mark)
			pos = v[1]
		}
	}
	out.WriteString(s[pos:])
	return out.String()
}

// values are the places of secrets among the arguments that begin at from.
func (f shortFlag) values(s string, from int) (found [][2]int) {
	words, next, behind := 0, false, f.after == ""
	for {
		at, ok := argument(s, from)
		if !ok {
			return found
		}
		end := argumentEnd(s, at)
		word := s[at:end]
		from = end
		flag := slices.IndexFunc(f.flags, func(name string) bool { return strings.HasPrefix(word, name) })
		switch {
		case next:
			next, words = false, 0
			if f.hides(word) && !goesOn(word) {
				found = append(found, [2]int{at, end})
			}
		case !behind:
			behind = word == f.after
			words++
		case flag >= 0 && word == f.flags[flag]:
			next, words = f.apart, 0
		case flag >= 0:
			at += len(f.flags[flag])
			if f.hides(s[at:end]) {
				found = append(found, [2]int{at, end})
			}
			words = 0
		case word[0] == '-':
			words = -1 // one more may be its value
		default:
			words++
		}
		if words > maxWords {
			return found
		}
	}
}

func (f shortFlag) hides(v string) bool {
	v = strings.Trim(v, "\"'`")
	switch {
	case v == "" || strings.IndexByte("-$<[", v[0]) >= 0 || v[0] == '%' && strings.HasSuffix(v, "%"):
		return false
	case strings.HasPrefix(v, "{{") || strings.Trim(v, "*xX.•") == "":
		return false
	case portMap.MatchString(v) || plainValues[strings.ToLower(v)]:
		return false
	}
	return !f.pair || strings.Contains(v, ":")
}

// goesOn tells a word that goes on with a sentence about a flag.
func goesOn(v string) bool { return len(v) <= 3 && isProse(v) }

// argument is where the next argument of a command begins: after blanks, or in a list of
// strings; false at the end of the command.
func argument(s string, i int) (int, bool) {
	from, joined := i, false
	for ; i < len(s); i++ {
		switch c := s[i]; c {
		case ',', '\\':
			joined = true
		case ' ', '\t', '"', '\'', '[', ']':
		case '\r', '\n':
			if !joined {
				return 0, false
			}
		case ';', '|', '&', ')', '}', '`', '>', '<':
			return 0, false
		default:
			return i, i > from
		}
	}
	return 0, false
}

// argumentEnd ends an argument at a blank, or at the quote that its value began with.
func argumentEnd(s string, from int) int {
	quote := byte(0)
	for i := from; i < len(s); i++ {
		c := s[i]
		switch {
		case quote != 0:
			if c == '\n' {
				return i
			}
			if c == quote {
				return i + 1
			}
		case (c == '"' || c == '\'') && i <= from+len("-hp") && s[from] == '-' && !closes(s, i):
			quote = c
		case c <= ' ' || strings.IndexByte("\"',;|&)]}`", c) >= 0:
			return i
		}
	}
	return len(s)
}

// closes tells a quote that ends an argument from one that opens its value.
func closes(s string, i int) bool {
	return i+1 >= len(s) || s[i+1] <= ' ' || strings.IndexByte(",])}", s[i+1]) >= 0
}

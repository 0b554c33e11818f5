package ship

import (
	"regexp"
	"strings"
)

// masked stands where a secret was.
const masked = "*****"

// A rule is one built-in mask. Its expression costs up to a microsecond a byte,
// which would be most of what shipping costs in a storm: a trace that names
// SelectionKey took 0.7 ms. So a text is first looked through for what a match
// has to have, and then the expression reads that line alone.
type rule struct {
	may   func(low string) bool // in small letters; false where there can be no match
	whole bool                  // a match may go on behind a line's end
	re    *regexp.Regexp
}

// has is one of the words anywhere.
func has(words ...string) func(string) bool {
	return func(low string) bool { return holds(low, words) }
}

func holds(s string, words []string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// assigned is one of the words in a name before what stands before a value. Of a
// long name its end is looked at: what may follow a word is short.
func assigned(words ...string) func(string) bool {
	return func(low string) bool {
		for at := range len(low) {
			switch c := low[at]; {
			case c == '=' || c == ':':
			case c == '%' && strings.HasPrefix(low[at:], "%3d"):
			default:
				continue
			}
			end := at
			for end > 0 && strings.IndexByte("\\\"'] \t", low[end-1]) >= 0 {
				end--
			}
			from := end
			for from > 0 && end-from < 40 && isName(low[from-1]) {
				from--
			}
			if from < end && holds(low[from:end], words) {
				return true
			}
		}
		return false
	}
}

// tagged is one of the words in the name of an XML element.
func tagged(words ...string) func(string) bool {
	return func(low string) bool {
		for {
			i := strings.IndexByte(low, '<')
			if i < 0 {
				return false
			}
			low = low[i+1:]
			end := 0
			for end < len(low) && (isName(low[end]) || low[end] == ':') {
				end++
			}
			if holds(low[:end], words) {
				return true
			}
		}
	}
}

// parameter is one of the words as a whole name in a query string.
func parameter(words ...string) func(string) bool {
	return func(low string) bool {
		for {
			i := strings.IndexAny(low, "?&;")
			if i < 0 {
				return false
			}
			low = low[i+1:]
			for _, w := range words {
				if strings.HasPrefix(low, w) {
					return true
				}
			}
		}
	}
}

// addressed is an address with somebody in it.
func addressed(low string) bool {
	i := strings.Index(low, "://")
	return i >= 0 && strings.IndexByte(low[i:], '@') >= 0
}

func isName(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '.' || c == '-'
}

// What stands between a name and its value, as in a=b, "a":"b", \"a\": \"b\"
// (JSON in a string of JSON) and a%3Db. It stays on its line: "password:" at the
// end of one must not take what hides a secret on the next.
const is = `[\\"'\]]*[ \t]*(?:=|:|%3[dD])[ \t]*`

// quoted is a value in quotes, to its line's end where they are not closed: a
// line that was cut may have lost them.
const quoted = `"(?:[^"\\\r\n]|\\.)*"?|'(?:[^'\\\r\n]|\\.)*'?|\\+"[^"\r\n]*"?`

// value is a value in quotes or a word; a word ends where a query string, a list
// or a bracket would go on.
const value = `(` + quoted + `|[^\s&;,"'\]})|]+)`

// names are what a setting, a field or a parameter is called that holds a
// secret. One that goes on (tokenizer, passed, author) is another one.
const names = `(?:(?:password|passwd|secret|token)(?:s|[-_.]?(?:value|hash|id|key|new|old|text|[0-9]{1,2}))?|pass(?:phrase|code)?|pwd|` +
	`(?:api|access|private|secret|encryption|signing|shared)[-_.]?keys?|credentials?|jsessionid(?:sso)?|session[-_.]?id|signature|\bsig|` +
	`auth(?:[-_.]?(?:key|code|data))?|assertion|samlresponse)`

// secretWords are in each of the names.
var secretWords = []string{"pass", "pwd", "secret", "token", "key", "credential", "sessionid", "session_id", "session-id", "session.id", "sig", "auth", "assertion", "samlresponse"}

// builtIn are the masks that are always on. What they hide: the values of
// headers that carry a right, of query parameters, form fields, JSON members, XML
// elements and settings whose name says secret, passwords inside of addresses and
// of SQL, session ids in paths, private keys, and bare JSON web tokens. What they
// can't know: a secret without a name beside it, or the rest of one that is not
// in quotes and has a space or one of & ; , | ) ] } in it.
var builtIn = []rule{
	{assigned("authorization"), false, regexp.MustCompile(`(?i)authorization` + is + `[\\\["']*((?:[a-z][a-z0-9-]*[ \t]+)?(?:[^\s"',;\]})=]|="[^"\r\n]*"?|=)+(?:[ \t]*,[ \t]*[a-z]+=(?:"[^"\r\n]*"?|[^\s,"]+))*)`)},
	{assigned("cookie"), false, regexp.MustCompile(`(?i)cookies?2?` + is + `\[?(` + quoted + `|[^\s\]})"'][^\r\n\]})]*)`)},
	{has("bearer ", "bearer\t"), false, regexp.MustCompile(`(?i)bearer[ \t]+([a-z0-9._~+/=-]{8,})`)},
	{assigned(secretWords...), false, regexp.MustCompile(`(?i)` + names + is + value)},
	{tagged(secretWords...), true, regexp.MustCompile(`(?i)<(?:[a-z0-9_.-]*:)?[a-z0-9_.-]*?` + names + `(?:\s[^<>]*)?>([^<]+)`)},
	// These say too little elsewhere, and in a query string they say enough.
	{parameter("key=", "sid=", "otp=", "session=", "ticket="), false, regexp.MustCompile(`(?i)[?&;](?:key|sid|otp|session|ticket)=([^\s&;"'#]+)`)},
	{has("identified"), true, regexp.MustCompile(`(?i)identified\s+by\s+(` + quoted + `|[^\s;]+)`)},
	{has("private key-----"), true, regexp.MustCompile(`(?i)-----BEGIN [a-z0-9 ]*PRIVATE KEY-----([^-]+)`)},
	{addressed, false, regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://[^\s/?#@:"']*:([^\s/"']+)@`)},
	{has("eyj"), false, regexp.MustCompile(`(eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]+\.?[A-Za-z0-9_-]*)`)},
}

// masker applies the built-in masks and those of the settings.
type masker struct{ own []*regexp.Regexp }

func newMasker(own []Mask) masker {
	var m masker
	for _, o := range own {
		if re, err := regexp.Compile(o.Match); err == nil {
			m.own = append(m.own, re)
		}
	}
	return m
}

// mask hides the secrets of s.
func (m masker) mask(s string) string {
	low := lower(s)
	for i := range builtIn {
		r := &builtIn[i]
		if !r.may(low) {
			continue
		}
		was := s
		if r.whole {
			s = replace(r.re, s)
		} else {
			s = r.byLine(s, low)
		}
		if s != was {
			low = lower(s)
		}
	}
	for _, re := range m.own {
		s = replace(re, s)
	}
	return s
}

// byLine applies the expression to the lines in which it may match. low is s in
// small letters, byte by byte.
func (r *rule) byLine(s, low string) string {
	var b strings.Builder
	done := 0
	for at := 0; at < len(s); {
		end := len(s)
		if i := strings.IndexByte(s[at:], '\n'); i >= 0 {
			end = at + i
		}
		if r.may(low[at:end]) {
			b.WriteString(s[done:at])
			b.WriteString(replace(r.re, s[at:end]))
			done = end
		}
		at = end + 1
	}
	b.WriteString(s[done:])
	return b.String()
}

// lower makes small letters of ASCII's capitals and leaves each byte in its place.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// replace puts masked in the place of the first group of each match, or of the
// match where there is no group.
func replace(re *regexp.Regexp, s string) string {
	found := re.FindAllStringSubmatchIndex(s, -1)
	if found == nil {
		return s
	}
	var b strings.Builder
	at := 0
	for _, m := range found {
		from, to := m[0], m[1]
		if len(m) > 2 && m[2] >= 0 {
			from, to = m[2], m[3]
		}
		if from < at {
			continue
		}
		b.WriteString(s[at:from])
		b.WriteString(masked)
		at = to
	}
	b.WriteString(s[at:])
	return b.String()
}

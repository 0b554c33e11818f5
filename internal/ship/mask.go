package ship

import (
	"regexp"
	"strings"
)

// masked stands where a secret was.
const masked = "*****"

// A rule is one built-in mask. words are the small-letter texts without one of
// which its expression can't match: looking for them first costs a tenth.
type rule struct {
	words []string
	re    *regexp.Regexp
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

var secretWords = []string{"pass", "pwd", "secret", "token", "key", "credential", "sessionid", "session_id", "session-id", "session.id", "signature", "sig", "auth", "assertion", "samlresponse"}

// builtIn are the masks that are always on. What they hide: the values of
// headers that carry a right, of query parameters, form fields, JSON members, XML
// elements and settings whose name says secret, passwords inside of addresses and
// of SQL, session ids in paths, private keys, and bare JSON web tokens. What they
// can't know: a secret without a name beside it, or the rest of one that is not
// in quotes and has a space or one of & ; , | ) ] } in it.
var builtIn = []rule{
	{[]string{"authorization"}, regexp.MustCompile(`(?i)authorization` + is + `[\\\["']*((?:[a-z][a-z0-9-]*[ \t]+)?(?:[^\s"',;\]})=]|="[^"\r\n]*"?|=)+(?:[ \t]*,[ \t]*[a-z]+=(?:"[^"\r\n]*"?|[^\s,"]+))*)`)},
	{[]string{"cookie"}, regexp.MustCompile(`(?i)cookies?2?` + is + `\[?(` + quoted + `|[^\s\]})"'][^\r\n\]})]*)`)},
	{[]string{"bearer "}, regexp.MustCompile(`(?i)bearer\s+([a-z0-9._~+/=-]{8,})`)},
	{secretWords, regexp.MustCompile(`(?i)` + names + is + value)},
	{secretWords, regexp.MustCompile(`(?i)<(?:[a-z0-9_.-]*:)?[a-z0-9_.-]*?` + names + `(?:\s[^<>]*)?>([^<]+)`)},
	// These say too little elsewhere, and in a query string they say enough.
	{[]string{"key=", "sid=", "otp=", "session=", "ticket="}, regexp.MustCompile(`(?i)[?&;](?:key|sid|otp|session|ticket)=([^\s&;"'#]+)`)},
	{[]string{"identified by"}, regexp.MustCompile(`(?i)identified\s+by\s+(` + quoted + `|[^\s;]+)`)},
	{[]string{"private key-----"}, regexp.MustCompile(`(?i)-----BEGIN [a-z0-9 ]*PRIVATE KEY-----([^-]+)`)},
	{[]string{"://"}, regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://[^\s/?#@:"']*:([^\s/"']+)@`)},
	{[]string{"eyj"}, regexp.MustCompile(`(eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]+\.?[A-Za-z0-9_-]*)`)},
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
	low := strings.ToLower(s)
	for i := range builtIn {
		r := &builtIn[i]
		for _, w := range r.words {
			if strings.Contains(low, w) {
				s = replace(r.re, s)
				break
			}
		}
	}
	for _, re := range m.own {
		s = replace(re, s)
	}
	return s
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

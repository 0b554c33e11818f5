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

// builtIn are the masks that are always on. What they hide: the values of
// headers that carry a right, of query parameters, form fields, JSON members and
// settings whose name says secret, passwords inside of addresses, session ids in
// paths, and bare JSON web tokens. What they can't know: a secret without a name
// beside it.
var builtIn = []rule{
	{[]string{"authorization"}, regexp.MustCompile(`(?i)authorization["']?\s*[:=]\s*[\["']*((?:(?:basic|bearer|digest|negotiate|ntlm|token|apikey|aws4-hmac-sha256)\s+)?[^\s"',;\]})]+(?:\s*,\s*[a-z]+=(?:"[^"]*"|[^\s,"]+))*)`)},
	{[]string{"cookie"}, regexp.MustCompile(`(?i)cookie["']?\s*[:=]\s*[\["']*([^\s"'\]})][^"'\r\n\]})]*)`)},
	{[]string{"bearer "}, regexp.MustCompile(`(?i)\bbearer\s+([a-z0-9._~+/=-]{8,})`)},
	{[]string{"pass", "pwd", "secret", "token", "key", "credential", "sessionid", "signature", "sig="}, regexp.MustCompile(`(?i)(?:pass(?:word|wd|phrase|code)?|pwd|secret|token|api[-_.]?key|access[-_.]?key|private[-_.]?key|secret[-_.]?key|credentials?|jsessionid|session[-_.]?id|signature|\bsig)["'\]]*\s*(?:=|:|%3[dD])\s*("[^"]*"|'[^']*'|[^\s&;,"'\]})|]+)`)},
	{[]string{"://"}, regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://[^\s/?#@:"']*:([^\s/"']+)@`)},
	{[]string{"eyj"}, regexp.MustCompile(`\b(eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]+\.?[A-Za-z0-9_-]*)`)},
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

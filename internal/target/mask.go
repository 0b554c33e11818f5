package target

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Mask is what stands in the place of a secret, wherever one is shown.
const Mask = "*****"

// secretKey finds the names whose values are nobody's business. "key" alone
// would mask keepAlive's cousins and keystoreFile too, which is a price worth
// paying, but keepalive itself is a figure people need.
var secretKey = regexp.MustCompile(`(?i)pass|pwd|secret|token|key|credential|auth`)

// harmlessKey are names that secretKey catches and that are no secrets.
var harmlessKey = regexp.MustCompile(`(?i)keystore(File|Type|Provider)$|truststore(File|Type|Provider)$|keyAlias$|keepAlive|bypass|passive|^monkey|tokenizer|secretRequired$|author(s|ity)?$|authModule|passwordFile$`)

// IsSecret says whether the value of a setting with this name is masked.
func IsSecret(key string) bool {
	return secretKey.MatchString(key) && !harmlessKey.MatchString(key)
}

// maxMasked is far beyond what is ever shown of one text.
const maxMasked = 8 << 10

// userInfo is the part of a URL that may hold a password: all from the colon to
// the last "@" before the path. oracleInfo is how Oracle's URLs spell it.
var (
	userInfo   = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.:-]*://)([^\s/?#@:]*):([^\s/]+)@`)
	oracleInfo = regexp.MustCompile(`(jdbc:oracle:[a-z]+:)([^\s/@]+)/([^\s]+)@`)
)

// inlineSecret is key=value inside of a longer text, as in the query of a JDBC
// URL or the options of an agent.
var inlineSecret = regexp.MustCompile(`(?i)([\w.\-]*(?:pass|pwd|secret|token|key|credential|auth)[\w.\-]*)([=:])("[^"]*"|'[^']*'|[^\s&;,"']+)`)

// MaskValue masks the secrets in the value of a setting called key.
func MaskValue(key, value string) string {
	if value != "" && IsSecret(key) {
		return Mask
	}
	return MaskText(value)
}

// MaskText masks what looks like a secret in any text: passwords in URLs, and
// key=value where the key says so.
//
// What is shown is short, so a hostile text of megabytes is cut first.
func MaskText(s string) string {
	if len(s) > maxMasked {
		s = s[:maxMasked]
	}
	if !strings.ContainsAny(s, "=:@") {
		return s
	}
	s = userInfo.ReplaceAllString(s, "${1}${2}:"+Mask+"@")
	s = oracleInfo.ReplaceAllString(s, "${1}${2}/"+Mask+"@")
	return inlineSecret.ReplaceAllStringFunc(s, func(m string) string {
		p := inlineSecret.FindStringSubmatch(m)
		if harmlessKey.MatchString(p[1]) {
			return m
		}
		return p[1] + p[2] + Mask
	})
}

// MaskArgs masks the arguments of a command line: -Dkey=value, --key=value,
// --key value, -javaagent options, URLs.
func MaskArgs(args []string) []string {
	out := make([]string, len(args))
	hide := false
	for i, a := range args {
		switch {
		case hide && !strings.HasPrefix(a, "-"):
			out[i] = Mask
		default:
			out[i] = maskArg(a)
		}
		hide = strings.HasPrefix(a, "-") && !strings.ContainsAny(a, "=:") && IsSecret(strings.TrimLeft(a, "-"))
	}
	return out
}

func maskArg(a string) string {
	if strings.HasPrefix(a, "-") {
		if key, value, ok := strings.Cut(a, "="); ok && !strings.ContainsAny(key, ": ,") {
			return key + "=" + MaskValue(strings.TrimPrefix(strings.TrimLeft(key, "-"), "D"), value)
		}
	}
	return MaskText(a)
}

// clean makes a text that a stranger wrote fit to be shown and to be a label:
// valid UTF-8, without control characters, and of bounded length.
func clean(s string, limit int) string {
	ok := len(s) <= limit && utf8.ValidString(s)
	for i := 0; ok && i < len(s); i++ {
		ok = s[i] >= 0x20 && s[i] != 0x7f
	}
	if ok && !strings.ContainsFunc(s, unprintable) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unprintable(r) || r == utf8.RuneError {
			r = '\uFFFD'
		}
		if b.Len()+utf8.RuneLen(r) > limit-3 {
			b.WriteString("…")
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}

// unprintable includes the marks that turn the direction of writing, with
// which a name can be made to look like another.
func unprintable(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)
}

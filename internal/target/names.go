package target

import (
	"path"
	"regexp"
	"strings"
)

// This file makes names of log files into streams: the label without date and
// number, and the pattern of those names that have a date in them.

// fixedFile is a log whose live name does not change.
func fixedFile(p string) LogFile {
	return LogFile{Name: FoldName(path.Base(p)), Path: p, Dir: path.Dir(p)}
}

// datedFile is a log with a date in its live name, written as one of Java's
// SimpleDateFormat.
func datedFile(dir, prefix, dateFormat, suffix string) LogFile {
	return LogFile{
		Name:  FoldName(prefix + sampleDate(dateFormat) + suffix),
		Dir:   dir,
		Match: "^" + quote(prefix) + dateRegexp(dateFormat) + quote(suffix) + "$",
	}
}

// dateRegexp is what a SimpleDateFormat prints, as a regular expression.
func dateRegexp(format string) string {
	var b strings.Builder
	for i := 0; i < len(format); {
		c := format[i]
		if c == '\'' {
			end := strings.IndexByte(format[i+1:], '\'')
			if end < 0 {
				end = len(format) - i - 1
			}
			b.WriteString(quote(format[i+1 : i+1+end]))
			i += end + 2
			continue
		}
		n := 1
		for i+n < len(format) && format[i+n] == c {
			n++
		}
		switch {
		case strings.IndexByte("MLEGaz", c) >= 0 && (n > 2 || strings.IndexByte("EGaz", c) >= 0):
			b.WriteString(`[^/]+?`) // a month, day or zone by name
		case c == 'Z' || c == 'X':
			b.WriteString(`[+\-Z0-9:]+`)
		case c == 'y' && n != 2 || c == 'Y' && n != 2:
			b.WriteString(`\d{4}`)
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			if n == 1 {
				b.WriteString(`\d{1,3}`)
			} else {
				b.WriteString(`\d{` + string(rune('0'+min(n, 9))) + `}`)
			}
		default:
			b.WriteString(strings.Repeat(quote(string(rune(c))), n))
		}
		i += n
	}
	return b.String()
}

// quote is regexp.QuoteMeta for names that need not be UTF-8: a byte that is none
// is the replacement character to the regexp package, in pattern and text alike.
func quote(s string) string {
	return regexp.QuoteMeta(strings.Map(func(r rune) rune { return r }, s))
}

// sampleDate is one date in the format, so that folding a name with it shows
// what is left without any.
func sampleDate(format string) string {
	var b strings.Builder
	sample := map[rune]string{'y': "2026", 'M': "11", 'd': "30", 'H': "12", 'h': "12", 'm': "30", 's': "30"}
	last := rune(0)
	for _, r := range format {
		switch d, letter := sample[r]; {
		case r == '\'':
		case letter && r != last:
			b.WriteString(d)
		case !letter:
			b.WriteRune(r)
		}
		last = r
	}
	return b.String()
}

// parts of a file's name that change from day to day or from start to start.
var changing = []*regexp.Regexp{
	regexp.MustCompile(`[._\-]?(?:19|20)\d\d[-_.]?[01]\d[-_.]?[0-3]\d(?:[-_.T]?[0-2]\d[-_:.]?[0-5]\d(?:[-_:.]?[0-5]\d)?)?`),
	regexp.MustCompile(`[._\-](?:pid)?\d+(?:\.current)?$`),
	regexp.MustCompile(`[._\-](?:pid)?\d+([._\-])`),
	regexp.MustCompile(`\.current$`),
}

// FoldName takes date, pid and number out of a log's base name, so that it can
// be a label: localhost_access_log.2026-11-30.txt is localhost_access_log.txt.
func FoldName(base string) string {
	folded := changing[0].ReplaceAllString(base, "")
	folded = changing[3].ReplaceAllString(folded, "")
	folded = changing[1].ReplaceAllString(folded, "")
	folded = changing[2].ReplaceAllString(folded, "$1")
	folded = strings.TrimLeft(folded, "._-")
	if folded == "" {
		folded = base
	}
	return clean(folded, 120)
}

// uniqueNames makes the labels of a target's logs differ where two folders have
// a file of the same name.
func uniqueNames(files []*LogFile) {
	count := map[string]int{}
	for _, f := range files {
		count[f.Name]++
	}
	taken := map[string]bool{}
	for _, f := range files {
		if count[f.Name] > 1 || taken[f.Name] {
			f.Name = clean(path.Base(f.Dir)+"/"+f.Name, 160)
		}
		for base, n := f.Name, 2; taken[f.Name]; n++ {
			f.Name = base + "#" + string(rune('0'+min(n, 9)))
			if n > 9 {
				break
			}
		}
		taken[f.Name] = true
	}
}

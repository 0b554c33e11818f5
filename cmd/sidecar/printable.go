package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// printable keeps what a stranger wrote, into a log or as a file's name, from
// steering the terminal: besides ESC there are the controls of one character
// (U+009B is ESC and [ in one) and the marks that turn the direction of writing.
func printable(s string) string {
	if !strings.ContainsFunc(s, steers) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if steers(r) {
			return '·'
		}
		return r
	}, s)
}

func steers(r rune) bool {
	return r != '\n' && r != '\t' && (r == utf8.RuneError || unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp))
}

// printableJSON writes the same characters of a JSON text as escapes, by which
// nothing is lost. They stand in its strings only.
func printableJSON(s string) string {
	if !strings.ContainsFunc(s, steers) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if !steers(r) {
			b.WriteRune(r)
			continue
		}
		for _, u := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, u)
		}
	}
	return b.String()
}

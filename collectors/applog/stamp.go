package applog

import (
	"strings"
	"time"
)

// months are the short names of the months that SimpleDateFormat's MMM and
// String.format's %tb print, January first, by running JDK 17.0.15 and 25.0.3
// (CLDR) and 17 with java.locale.providers=COMPAT (the names of JDK 8). Points
// at the end, and upper case, are taken away before a look-up.
var months = []string{
	"jan feb mar apr may jun jul aug sep oct nov dec",
	"jan feb märz apr mai juni juli aug sept okt nov dez", // de
	"jan feb mär apr mai jun jul aug sep okt nov dez",
	"janv févr mars avr mai juin juil août sept oct nov déc",                           // fr
	"ene feb mar abr may jun jul ago sept oct nov dic",                                 // es
	"gen feb mar apr mag giu lug ago set ott nov dic",                                  // it
	"1月 2月 3月 4月 5月 6月 7月 8月 9月 10月 11月 12月",                                           // ja, zh
	"一月 二月 三月 四月 五月 六月 七月 八月 九月 十月 十一月 十二月",                                            // zh, JDK 8
	"1월 2월 3월 4월 5월 6월 7월 8월 9월 10월 11월 12월",                                           // ko
	"1 2 3 4 5 6 7 8 9 10 11 12",                                                       // ja, JDK 8
	"jan fev mar abr mai jun jul ago set out nov dez",                                  // pt
	"jan feb mars apr maj juni juli aug sep okt nov dec",                               // sv
	"янв февр мар апр мая июн июл авг сент окт нояб дек",                               // ru
	"янв фев март апр май июнь июль авг сен окт ноя дек",                               // ru, JDK 8 and alone
	"sty lut mar kwi maj cze lip sie wrz paź lis gru",                                  // pl
	"jan feb mrt apr mei jun jul aug sep okt nov dec",                                  // nl
	"led úno bře dub kvě čvn čvc srp zář říj lis pro",                                  // cs
	"oca şub mar nis may haz tem ağu eyl eki kas ara",                                  // tr
	"січ лют бер квіт трав черв лип серп вер жовт лист груд",                           // uk
	"tammik helmik maalisk huhtik toukok kesäk heinäk elok syysk lokak marrask jouluk", // fi
	"tammi helmi maalis huhti touko kesä heinä elo syys loka marras joulu",             // fi, JDK 25
	"jan feb mars apr mai juni juli aug sep okt nov des",                               // nb
	"jan febr márc ápr máj jún júl aug szept okt nov dec",                              // hu
	"ιαν φεβ μαρ απρ μαΐ ιουν ιουλ αυγ σεπ οκτ νοε δεκ",                                // el
	"ian feb mar apr mai iun iul aug sept oct nov dec",                                 // ro
}

// monthByName leaves out what two languages use for different months: "lis" is
// November in Poland and October nowhere in this list, but such things come.
var monthByName = func() map[string]time.Month {
	m := map[string]time.Month{}
	clash := map[string]bool{}
	add := func(name string, i int) {
		if have, ok := m[name]; ok && have != time.Month(i+1) {
			clash[name] = true
		}
		m[name] = time.Month(i + 1)
	}
	for _, language := range months {
		for i, name := range strings.Fields(language) {
			add(name, i)
			if l1, ok := latin1(name); ok {
				add(l1, i)
			}
		}
	}
	for name := range clash {
		delete(m, name)
	}
	return m
}()

// monthOf reads a month's name in any language of the list, or 0.
func monthOf(name []byte) time.Month {
	if m := monthByName[string(name)]; m != 0 {
		return m
	}
	s := strings.TrimRight(string(name), ".")
	if m := monthByName[s]; m != 0 {
		return m
	}
	if m := monthByName[strings.ToLower(s)]; m != 0 {
		return m
	}
	// Latin-1 is no text to strings.ToLower.
	b := []byte(s)
	for i, c := range b {
		if isUpper(c) {
			b[i] = c | 0x20
		}
	}
	return monthByName[string(b)]
}

// millis makes Unix milliseconds of a wall clock as if it were UTC. The log
// does not say its zone; the figures are shown as the log prints them, and
// nothing is counted by them.
func millis(y int, mo time.Month, d, h, m, s, ms int) int64 {
	return time.Date(y, mo, d, h, m, s, ms*1e6, time.UTC).UnixMilli()
}

func isDigit(c byte) bool { return c-'0' < 10 }

func isUpper(c byte) bool { return c-'A' < 26 }

func isAlpha(c byte) bool { return (c|0x20)-'a' < 26 }

// two reads two digits, or -1.
func two(b []byte) int {
	if !isDigit(b[0]) || !isDigit(b[1]) {
		return -1
	}
	return int(b[0]-'0')*10 + int(b[1]-'0')
}

// clock reads hh:mm:ss at the start of b (colons, or points as Italian and
// Finnish have them) and then a fraction of up to nine digits behind a point or
// a comma. n is the length read, 0 when it is none.
func clock(b []byte) (h, m, s, ms, n int) {
	if len(b) < 8 || b[2] != ':' && b[2] != '.' || b[5] != b[2] {
		return 0, 0, 0, 0, 0
	}
	h, m, s = two(b), two(b[3:]), two(b[6:])
	if h < 0 || m < 0 || s < 0 || h > 23 || m > 59 || s > 60 {
		return 0, 0, 0, 0, 0
	}
	n = 8
	if len(b) > 9 && (b[8] == '.' || b[8] == ',') && isDigit(b[9]) {
		n = 9
		for scale := 100; n < len(b) && isDigit(b[n]); n++ {
			ms += int(b[n]-'0') * scale
			scale /= 10
			if n > 18 {
				return 0, 0, 0, 0, 0
			}
		}
	}
	return h, m, s, ms, n
}

// isoDate reads yyyy-MM-dd or yyyy/MM/dd.
func isoDate(b []byte) (y int, mo time.Month, d int, ok bool) {
	if len(b) < 10 || b[4] != '-' && b[4] != '/' && b[4] != '.' || b[7] != b[4] {
		return
	}
	c, e := two(b), two(b[2:])
	m := two(b[5:])
	d = two(b[8:])
	if c < 0 || e < 0 || m < 1 || m > 12 || d < 1 || d > 31 {
		return
	}
	return c*100 + e, time.Month(m), d, true
}

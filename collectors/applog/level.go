package applog

import "strings"

// Level is how grave a record says it is, in the words of its own layout: juli
// has SEVERE and WARNING where log4j, logback and Jetty have ERROR and WARN.
// They are kept apart, because the number a user compares with is grep's.
type Level uint8

// The levels rise. None is a record whose layout prints no level, or one whose
// word for it is not known.
const (
	None Level = iota
	Finest
	Trace
	Finer
	Fine
	Debug
	Conf
	Info
	Warning
	Warn
	Severe
	Error
	Fatal
	levels
)

var levelNames = [levels]string{"NONE", "FINEST", "TRACE", "FINER", "FINE", "DEBUG", "CONFIG", "INFO",
	"WARNING", "WARN", "SEVERE", "ERROR", "FATAL"}

func (l Level) String() string { return levelNames[l] }

// grave says whether a stack trace under this level is trouble. INFO with a
// stack is none: Tomcat's "Error parsing HTTP request header" is the client's.
func (l Level) grave() bool { return l >= Warning || l == None }

// localised are java.util.logging's levels from SEVERE to FINEST as
// Level.getLocalizedName prints them, seen by running JDK 17.0.15 and 25.0.3
// with -Duser.language (both print the same). Other languages have no bundle
// and print English. The Japanese 致命的 is JDK 8's. What JDK 8 wrote otherwise
// is added below.
var localised = []string{
	"SEVERE WARNING INFO CONFIG FINE FINER FINEST",
	"SCHWERWIEGEND WARNUNG INFORMATION KONFIGURATION FEIN FEINER AM_FEINSTEN",              // de
	"GRAVE AVERTISSEMENT INFOS CONFIG PRÉCIS PLUS_PRÉCIS LE_PLUS_PRÉCIS",                   // fr
	"GRAVE ADVERTENCIA INFORMACIÓN CONFIGURAR DETALLADO MUY_DETALLADO MÁS_DETALLADO",       // es
	"GRAVE AVVERTENZA INFORMAZIONI CONFIGURAZIONE BUONO MIGLIORE OTTIMALE",                 // it
	"重大 警告 情報 構成 普通 詳細 最も詳細",                                                               // ja
	"심각 경고 정보 구성 미세 보다_미세 가장_미세",                                                           // ko
	"GRAVE ADVERTÊNCIA INFORMAÇÕES CONFIGURAÇÃO DETALHADO MAIS_DETALHADO O_MAIS_DETALHADO", // pt_BR
	"ALLVARLIG VARNING INFO KONFIG FIN FINARE FINASTE",                                     // sv
	"严重 警告 信息 配置 详细 较详细 非常详细",                                                              // zh_CN
	"嚴重 警告 資訊 組態 - 較詳細 最詳細",                                                                // zh_TW; its FINE is Japan's FINER
	"致命的 警告 情報 構成 普通 詳細 最も詳細",                                                              // ja, JDK 8
	"Grave Advertencia Información Configurar Detallado Muy_detallado Más_detallado",       // es, JDK 8 and before
	"Schwerwiegend Warnung Information Konfiguration Fein Feiner Am_feinsten",              // de, as some 6 printed it
	"Grave Avertissement Infos Config Précis Plus_précis Le_plus_précis",                   // fr, the same
}

// levelByName holds every name of a level in every form in which it may come:
// as UTF-8, as Latin-1, and with question marks where the JVM's charset (the
// POSIX locale's) had no such letter. A form that two levels share is left out.
var levelByName = func() map[string]Level {
	m := map[string]Level{}
	clash := map[string]bool{}
	add := func(name string, l Level) {
		if have, ok := m[name]; ok && have != l {
			clash[name] = true
		}
		m[name] = l
	}
	juli := []Level{Severe, Warning, Info, Conf, Fine, Finer, Finest}
	for _, language := range localised {
		for i, name := range strings.Fields(language) {
			if name == "-" {
				continue
			}
			name = strings.ReplaceAll(name, "_", " ")
			add(name, juli[i])
			if l1, ok := latin1(name); ok {
				add(l1, juli[i])
			}
			add(questionMarks(name), juli[i])
		}
	}
	for name := range clash {
		delete(m, name)
	}
	for l := Finest; l < levels; l++ {
		m[levelNames[l]] = l
	}
	m["OFF"], m["ALL"] = None, None
	return m
}()

func latin1(s string) (string, bool) {
	var b strings.Builder
	for _, r := range s {
		if r > 0xff {
			return "", false
		}
		b.WriteByte(byte(r))
	}
	return b.String(), true
}

func questionMarks(s string) string {
	return strings.Map(func(r rune) rune {
		if r > 0x7f {
			return '?'
		}
		return r
	}, s)
}

// levelOf finds a level by its name; the four most frequent need no table.
func levelOf(name []byte) (Level, bool) {
	switch string(name) {
	case "INFO":
		return Info, true
	case "WARNING":
		return Warning, true
	case "SEVERE":
		return Severe, true
	case "WARN":
		return Warn, true
	}
	l, ok := levelByName[string(name)]
	return l, ok
}

// levelOfNumber reads a level given as a number: syslog's, as GELF has it.
func levelOfNumber(n int64) Level {
	switch {
	case n <= 2:
		return Fatal
	case n == 3:
		return Error
	case n == 4:
		return Warn
	case n <= 6:
		return Info
	}
	return Debug
}

package web

import (
	"bytes"
	"embed"
	"encoding/json"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/status"
)

//go:embed static
var static embed.FS

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"age":   func(t time.Time) string { return age(t, time.Now()) },
	"bytes": inBytes,
}).Parse(pageText))

// inBytes puts a size into words, as the live part of the page does.
func inBytes(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	v, unit := float64(n), 0
	for v >= 1024 && unit < 4 {
		v /= 1024
		unit++
	}
	digits := 0
	if v < 10 {
		digits = 1
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + " " + [...]string{"B", "KiB", "MiB", "GiB", "TiB"}[unit]
}

// visible is the status as this visitor may see it; lines asks for the refused
// lines too, for which every source is looked at closely.
func (s *site) visible(r *http.Request, lines bool) *status.Status {
	st := s.monitor.Status()
	if st == nil {
		return &status.Status{}
	}
	trusted := s.mayReadLines(r)
	out := *st
	out.Targets = make([]status.Server, len(st.Targets))
	for i, t := range st.Targets {
		t.Sources = append([]status.Source(nil), t.Sources...)
		for j := range t.Sources {
			switch src := &t.Sources[j]; {
			case !trusted || !lines:
				src.Refused = nil
			case src.Explain != nil:
				src.Refused = src.Explain(true).Refused
			}
		}
		out.Targets[i] = t
	}
	return &out
}

// explained is the answer of /explain.json.
type explained struct {
	Target string `json:"target"`
	// Lines says that the visitor may see what strangers wrote.
	Lines   bool        `json:"lines"`
	Sources []explainee `json:"sources"`
}

type explainee struct {
	status.Source
	Entries  []status.Entry   `json:"entries,omitempty"`
	Patterns []status.Pattern `json:"patterns,omitempty"`
	Settings string           `json:"settings,omitempty"`
}

// explain says how the sources of one target are read: ?target=NAME, and
// &source=ROOM&file=LABEL for one of them alone.
func (s *site) explain(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	out := explained{Target: q.Get("target"), Lines: s.mayReadLines(r), Sources: []explainee{}}
	found := false
	if st := s.monitor.Status(); st != nil {
		for _, t := range st.Targets {
			if t.Target == nil || t.Target.Name != out.Target {
				continue
			}
			found = true
			for _, src := range t.Sources {
				if q.Has("source") && src.Name != q.Get("source") || q.Has("file") && src.File != q.Get("file") {
					continue
				}
				e := explainee{Source: src}
				if src.Explain != nil {
					x := src.Explain(out.Lines)
					e.Entries, e.Patterns, e.Settings, e.Refused = x.Entries, x.Patterns, x.Settings, x.Refused
				}
				if !out.Lines {
					e.Entries, e.Patterns, e.Refused = nil, nil, nil
				}
				out.Sources = append(out.Sources, e)
			}
		}
	}
	if !found {
		http.Error(w, "no target "+strconv.Quote(out.Target)+": the page at / lists them", http.StatusNotFound)
		return
	}
	if len(out.Sources) == 0 && (q.Has("source") || q.Has("file")) {
		wanted := strings.TrimSpace(q.Get("source") + " " + q.Get("file"))
		http.Error(w, "target "+strconv.Quote(out.Target)+" has no source "+strconv.Quote(wanted)+": without source and file all are told", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if err := json.NewEncoder(w).Encode(out); err != nil {
		s.options.Log.Debug("explanation broken off", "err", err)
	}
}

// shown is what the page is drawn from.
type shown struct {
	*status.Status
	// Engine says that there is a history to ask for.
	Engine bool
}

func (s *site) page(w http.ResponseWriter, r *http.Request) {
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, shown{s.visible(r, true), s.options.API != nil}); err != nil {
		s.options.Log.Error("BUG: the page can't be drawn", "err", err)
		http.Error(w, "the page can't be drawn: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Write(b.Bytes())
}

func (s *site) statusJSON(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	// ?lines=0 is for whoever comes every few seconds.
	if err := enc.Encode(s.visible(r, r.FormValue("lines") != "0")); err != nil {
		s.options.Log.Debug("status broken off", "err", err)
	}
}

package web

import (
	"bytes"
	"embed"
	"encoding/json"
	"html/template"
	"net/http"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/status"
)

//go:embed static
var static embed.FS

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"age": func(t time.Time) string { return age(t, time.Now()) },
}).Parse(pageText))

// visible is the status as this visitor may see it.
func (s *site) visible(r *http.Request) *status.Status {
	st := s.monitor.Status()
	if st == nil {
		return &status.Status{}
	}
	if s.isTrusted(r) {
		return st
	}
	out := *st
	out.Targets = make([]status.Server, len(st.Targets))
	for i, t := range st.Targets {
		t.Sources = append([]status.Source(nil), t.Sources...)
		for j := range t.Sources {
			t.Sources[j].Refused = nil
		}
		out.Targets[i] = t
	}
	return &out
}

// shown is what the page is drawn from.
type shown struct {
	*status.Status
	// Engine says that there is a history to ask for.
	Engine bool
}

func (s *site) page(w http.ResponseWriter, r *http.Request) {
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, shown{s.visible(r), s.options.API != nil}); err != nil {
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
	if err := enc.Encode(s.visible(r)); err != nil {
		s.options.Log.Debug("status broken off", "err", err)
	}
}

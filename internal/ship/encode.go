package ship

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/golang/snappy"
	"github.com/grafana/loki/pkg/push"
)

// encode makes the body of a push. Lines of a stream stay in their order;
// streams come in the order of their first line.
func encode(lines []line, asJSON bool) (body []byte, contentType string, err error) {
	index := map[string]int{}
	var streams []push.Stream
	for i := range lines {
		l := &lines[i]
		k, ok := index[l.stream.text]
		if !ok {
			k = len(streams)
			index[l.stream.text] = k
			streams = append(streams, push.Stream{Labels: l.stream.text})
		}
		streams[k].Entries = append(streams[k].Entries, push.Entry{Timestamp: time.Unix(0, l.at).UTC(), Line: l.text, StructuredMetadata: l.meta})
	}
	if asJSON {
		body, err = encodeJSON(streams)
		return body, "application/json", err
	}
	req := push.PushRequest{Streams: streams}
	if body, err = req.Marshal(); err != nil {
		return nil, "", err
	}
	return snappy.Encode(nil, body), "application/x-protobuf", nil
}

// encodeJSON writes the form that /loki/api/v1/push takes. The push package's own
// MarshalJSON is of the form before it, and leaves structured metadata out.
func encodeJSON(streams []push.Stream) ([]byte, error) {
	type jsonStream struct {
		Stream map[string]string `json:"stream"`
		Values [][]any           `json:"values"`
	}
	var body struct {
		Streams []jsonStream `json:"streams"`
	}
	for _, st := range streams {
		labels, err := readLabels(st.Labels)
		if err != nil {
			return nil, err
		}
		js := jsonStream{Stream: labels}
		for _, e := range st.Entries {
			v := []any{strconv.FormatInt(e.Timestamp.UnixNano(), 10), e.Line}
			if len(e.StructuredMetadata) > 0 {
				v = append(v, e.StructuredMetadata)
			}
			js.Values = append(js.Values, v)
		}
		body.Streams = append(body.Streams, js)
	}
	return json.Marshal(body)
}

// readLabels reads what labelText wrote.
func readLabels(text string) (map[string]string, error) {
	out := map[string]string{}
	rest := text[1 : len(text)-1]
	for rest != "" {
		i := 0
		for rest[i] != '=' {
			i++
		}
		quoted, err := strconv.QuotedPrefix(rest[i+1:])
		if err != nil {
			return nil, err
		}
		if out[rest[:i]], err = strconv.Unquote(quoted); err != nil {
			return nil, err
		}
		rest = rest[i+1+len(quoted):]
		if len(rest) > 2 {
			rest = rest[2:] // ", "
		}
	}
	return out, nil
}

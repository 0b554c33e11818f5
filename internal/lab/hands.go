package lab

import (
	"encoding/json"
	"time"
)

// Drag presses the mouse in the middle of an element's height at a share of its
// width, moves it to another, and lets go. The element is scrolled into view.
func (b *Browser) Drag(selector string, from, to float64) error {
	var at struct{ X, Y, W float64 }
	if err := b.Eval(`(() => {
		const e = document.querySelector(`+quoteJS(selector)+`);
		e.scrollIntoView({ block: "center" });
		const r = e.getBoundingClientRect();
		return { X: r.left, Y: r.top + r.height / 2, W: r.width };
	})()`, &at); err != nil {
		return err
	}
	mouse := func(kind string, share float64, buttons int) error {
		return b.Call("Input.dispatchMouseEvent", map[string]any{
			"type": kind, "x": at.X + share*at.W, "y": at.Y, "button": "left", "buttons": buttons, "clickCount": 1,
		}, nil)
	}
	if err := mouse("mouseMoved", from, 0); err != nil {
		return err
	}
	if err := mouse("mousePressed", from, 1); err != nil {
		return err
	}
	for i := 1; i <= 4; i++ {
		if err := mouse("mouseMoved", from+(to-from)*float64(i)/4, 1); err != nil {
			return err
		}
	}
	return mouse("mouseReleased", to, 0)
}

// Key presses a key on what has the focus, and lets go.
func (b *Browser) Key(key string) error {
	for _, kind := range []string{"keyDown", "keyUp"} {
		text := ""
		if kind == "keyDown" && len(key) == 1 {
			text = key
		}
		if err := b.Call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "text": text}, nil); err != nil {
			return err
		}
	}
	return nil
}

// Words is a text of the page, or "" where the script says nothing.
func (b *Browser) Words(js string) string {
	var said string
	if b.Eval(js, &said) != nil {
		return ""
	}
	return said
}

// Idle lets the page run by itself for a while, and says which share of it the
// renderer worked, by kind: what it costs to leave the page open.
func (b *Browser) Idle(d time.Duration) (busy map[string]float64, err error) {
	before, err := b.Durations()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	time.Sleep(d)
	busy, err = b.Durations()
	took := time.Since(began).Seconds()
	for kind := range busy {
		busy[kind] = (busy[kind] - before[kind]) / took
	}
	return busy, err
}

// quoteJS makes a string of JavaScript.
func quoteJS(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

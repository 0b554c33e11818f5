// Values, times and colours in the words and shades that all of the page uses.

const scaled = (v, base, units) => {
  let i = 0;
  for (v = v || 0; Math.abs(v) >= base && i < units.length - 1; i++) v /= base;
  return short(v) + " " + units[i];
};

// Not toPrecision alone: of 99.6 that makes 1.0e+2.
const short = (v) => (Math.abs(v) >= 10 || Number.isInteger(v) ? v.toFixed(0) : String(Number(v.toPrecision(2))));

// format puts a value into words, by Grafana's names of the units.
export function format(v, unit) {
  if (v === null || v === undefined) return "–";
  switch (unit) {
    case "s":
      return v >= 1 || v === 0 ? short(v) + " s" : v >= 0.001 ? short(v * 1e3) + " ms" : short(v * 1e6) + " µs";
    case "bytes":
      return scaled(v, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
    case "Bps":
      return scaled(v, 1000, ["B/s", "kB/s", "MB/s", "GB/s"]);
    case "percentunit":
      return short(v * 100) + " %";
    case "reqps":
    case "cps":
      return scaled(v, 1000, ["/s", "k/s", "M/s"]);
  }
  return scaled(v, 1000, ["", "k", "M"]).trim();
}

// lasting puts a span of seconds into words.
export const lasting = (s) =>
  s < 60 ? `${Math.round(s)} s` : s < 3600 ? `${Math.floor(s / 60)} min ${Math.round(s % 60)} s` : s < 172800 ? `${(s / 3600).toFixed(1)} h` : `${Math.round(s / 86400)} days`;

// clock is the time of the viewer's own place, in 24 hours as logs have it.
// The formats are made once: to make one costs more than all else in a chart.
const minutes = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const seconds = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
export const clock = (t, step = 1) => (step < 60 ? seconds : minutes).format(t * 1000);

export const zone = minutes.resolvedOptions().timeZone || "local time";

// make is one element with its text. What comes out of a log or a metric only
// ever gets here, as text.
export function make(tag, className, text) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = text;
  return e;
}

// put changes a text only where it is another, since each change costs a layout
// and may be read aloud.
export const put = (e, text) => e.textContent === text || (e.textContent = text);

const dark = matchMedia("(prefers-color-scheme: dark)");
export const isDark = () => dark.matches;
export const onTheme = (f) => dark.addEventListener("change", f);

// Two sets of shades, each told apart on its ground, also by most who see few
// colours. What is bad is red and nothing else is: two reds, one dark and one
// light, since an answer that failed and no answer at all stand in one chart.
const SHADES = {
  light: { lines: ["#2563c9", "#b45309", "#7c4dc4", "#0f7a5a", "#a8326e", "#5f6b00", "#0e7490"], bad: "#c8102e", failed: "#6b0f1a", warn: "#b45309", limit: "#57606a", low: [222, 235, 250], high: [8, 48, 120] },
  dark: { lines: ["#6aa8ff", "#f0a35e", "#b79bff", "#4ecba0", "#f08bbd", "#c3cf4a", "#5ccfe6"], bad: "#ff6b6b", failed: "#ffcdc7", warn: "#f0a35e", limit: "#9aa4af", low: [24, 44, 74], high: [190, 222, 255] },
};
export const shades = () => (dark.matches ? SHADES.dark : SHADES.light);

// FIXED are the names that have the same colour on each page.
const FIXED = { "1xx": 6, "2xx": 0, "3xx": 2, "4xx": 1, p50: 3, p90: 0, p99: 2, "in use": 0, "after collection": 3, JVM: 0, machine: 1, stolen: 4 };
const BAD = { "5xx": "failed", "turned away": "bad" };

export function colour(name, i, dashed) {
  const s = shades();
  if (dashed) return s.limit;
  if (BAD[name]) return s[BAD[name]];
  return s.lines[(FIXED[name] ?? i) % s.lines.length];
}

// copy writes a text to the clipboard. A page without TLS may not: then the text
// is selected for the hand.
export async function copy(button, text, from) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(from);
    button.textContent = "Selected: press Ctrl+C";
  }
}

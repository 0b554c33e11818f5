// Figures for the charts: a grid of seconds, the query API that fills it, and,
// where there is no engine, a reader of /metrics in its stead.

// Grid holds named rows of values, one a second, for the last `span` seconds.
// A second without an answer holds null: the line has a gap there, never a 0.
export class Grid {
  constructor(span, now) {
    this.span = span;
    this.end = Math.floor(now);
    this.rows = new Map();
    this.seen = 0; // the second of the last value
  }

  advance(now) {
    const by = Math.min(Math.floor(now) - this.end, this.span);
    if (by <= 0) return;
    for (const [name, row] of this.rows) {
      row.copyWithin(0, by);
      row.fill(null, this.span - by);
      if (row.every((v) => v === null)) this.rows.delete(name);
    }
    this.end = Math.floor(now);
  }

  set(name, t, value) {
    const i = this.span - 1 - (this.end - Math.round(t));
    if (i < 0 || i >= this.span || !Number.isFinite(value)) return;
    let row = this.rows.get(name);
    if (!row) this.rows.set(name, (row = new Array(this.span).fill(null)));
    row[i] = value;
    this.seen = Math.max(this.seen, Math.round(t));
  }

  times() {
    if (this.timed !== this.end) {
      this.timed = this.end;
      this.axis = Array.from({ length: this.span }, (_, i) => this.end - this.span + 1 + i);
    }
    return this.axis;
  }

  // most is the greatest value from one second to another.
  most(from, to) {
    const t0 = this.end - this.span + 1;
    const a = Math.max(0, Math.ceil(from - t0));
    const b = Math.min(this.span - 1, Math.floor(to - t0));
    let top = 0;
    for (const row of this.rows.values()) {
      for (let i = a; i <= b; i++) if (row[i] > top) top = row[i];
    }
    return top;
  }

  // first is the second of the oldest value that is still kept.
  first() {
    let i = this.span;
    for (const row of this.rows.values()) {
      const at = row.findIndex((v) => v !== null);
      if (at >= 0) i = Math.min(i, at);
    }
    return this.end - this.span + 1 + i;
  }

  // last is the newest value of a row, unless it is older than `within` seconds.
  last(name, within = 5) {
    const row = this.rows.get(name);
    for (let i = this.span - 1; row && i >= this.span - within; i--) {
      if (row[i] !== null) return row[i];
    }
    return null;
  }
}

// fill puts the target into a query. The window of a rate is ten seconds: enough
// at one or two seconds a tick, and over soon after what it shows.
export const fill = (expr, target) =>
  expr.replaceAll("$target", target.replace(/["\\]/g, "\\$&")).replaceAll("$__rate_interval", "10s");

export const legend = (format, labels) => format.replace(/{{(\w+)}}/g, (_, l) => labels[l] ?? "");

// shift is the sidecar's clock less the viewer's, in seconds: the time axis is
// the sidecar's, whatever the viewer's clock says. HTTP tells whole seconds, so
// less than two are none.
let shift = 0;
export const now = () => Date.now() / 1000 + shift;

export async function ask(url, accept) {
  const r = await fetch(url, { signal: AbortSignal.timeout(10000), cache: "no-store", headers: accept ? { Accept: accept } : {} });
  const date = Date.parse(r.headers.get("Date")) / 1000;
  const off = date + 0.5 - Date.now() / 1000;
  if (date && Math.abs(off - shift) > 2) shift = Math.abs(off) > 2 ? off : 0;
  if (!r.ok) throw new Error(`${url.split("?")[0]} answers ${r.status}`);
  return r;
}

export const askJSON = async (url) => (await ask(url)).json();

// LOOKBACK is how old a value may be that is drawn as now's. A tick is a second
// and the slowest rule is evaluated every five; Prometheus' own five minutes
// would draw a flat line over the time in which nobody measured.
const LOOKBACK = "7s";

// API asks the sidecar's own query API, which is Prometheus'.
export class API {
  // range asks many queries at once, since a request costs more than a query:
  // each result is marked with the number of the query it belongs to.
  async range(queries, from, to) {
    // Halves of halves: a chain of or looks at the first series again at each link.
    const any = (all) => (all.length > 2 ? `(${any(all.slice(0, all.length / 2))}) or (${any(all.slice(all.length / 2))})` : all.join(" or "));
    const query = any(queries.map((expr, i) => `label_replace(${expr}, "line", "${i}", "", "")`));
    const q = new URLSearchParams({ query, start: from, end: to, step: 1, lookback_delta: LOOKBACK });
    return (await askJSON("/api/v1/query_range?" + q)).data.result;
  }

  async instant(expr) {
    return (await askJSON("/api/v1/query?" + new URLSearchParams({ query: expr }))).data.result;
  }

  async alerts() {
    return (await askJSON("/api/v1/alerts")).data.alerts;
  }
}

// parse reads an exposition: name -> [[labels, value], ...].
export function parse(text) {
  const all = new Map();
  for (const line of text.split("\n")) {
    const m = /^([a-zA-Z_:][\w:]*)(?:{(.*)})? (\S+)/.exec(line);
    if (!m) continue;
    const labels = {};
    for (const l of (m[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      labels[l[1]] = l[2].replace(/\\(.)/g, (_, c) => (c === "n" ? "\n" : c));
    }
    if (!all.has(m[1])) all.set(m[1], []);
    all.get(m[1]).push([labels, m[3] === "+Inf" ? Infinity : Number(m[3])]);
  }
  return all;
}

// sums adds the samples of a name that fit, by one label.
function sums(scrape, name, { where = {}, by }) {
  const out = new Map();
  for (const [labels, value] of scrape.get(name) ?? []) {
    if (Object.entries(where).some(([l, v]) => labels[l] !== v)) continue;
    const key = by ? labels[by] ?? "" : "";
    out.set(key, (out.get(key) ?? 0) + value);
  }
  return out;
}

// rates are increases a second between two scrapes; a counter that fell began
// again, and a series that was not there before has no rate yet.
function rates(now, before, seconds, name, spec) {
  const was = sums(before, name, spec);
  const out = new Map();
  for (const [key, value] of sums(now, name, spec)) {
    if (was.has(key)) out.set(key, (value >= was.get(key) ? value - was.get(key) : value) / seconds);
  }
  return out;
}

// quantile reads a classic histogram the way histogram_quantile does.
export function quantile(q, buckets) {
  const sorted = [...buckets].map(([le, n]) => [le === "+Inf" ? Infinity : Number(le), n]).sort((a, b) => a[0] - b[0]);
  const total = sorted.at(-1)?.[1] ?? 0;
  if (!(total > 0)) return NaN;
  const rank = q * total;
  const i = sorted.findIndex(([, n]) => n >= rank);
  if (sorted[i][0] === Infinity) return sorted[i - 1]?.[0] ?? NaN;
  const [low, below] = i > 0 ? sorted[i - 1] : [0, 0];
  return low + (sorted[i][0] - low) * ((rank - below) / (sorted[i][1] - below));
}

// Poller stands in for the engine where it is off: it keeps the scrapes of the
// last seconds and works the same figures out of them, from now on only.
export class Poller {
  constructor() {
    this.scrapes = []; // {t, of: name -> samples}, oldest first
  }

  async poll(target, t) {
    const of = parse(await (await ask("/metrics?target=" + encodeURIComponent(target), "text/plain")).text());
    this.scrapes.push({ t, of });
    while (this.scrapes.length > 11) this.scrapes.shift();
  }

  // values are [labels, value] of one series of a chart, now.
  values({ rate, gauge, quantile: q, of, by, where, and, positive, times = 1 }) {
    const now = this.scrapes.at(-1);
    const before = this.scrapes[0];
    if (!now) return [];
    if (gauge) {
      const allowed = and && sums(now.of, and, { by });
      return [...sums(now.of, gauge, { where, by })].filter(([k]) => !and || allowed.has(k)).map(([k, v]) => [{ [by]: k }, v]);
    }
    const seconds = now.t - before.t;
    if (seconds < 1) return [];
    if (q) return [[{}, quantile(q, rates(now.of, before.of, seconds, of, { by: "le" }))]];
    return [...rates(now.of, before.of, seconds, rate, { where, by })].filter(([, v]) => !positive || v > 0).map(([k, v]) => [{ [by]: k }, v * times]);
  }

  // lowest is the least sample of a name, or null.
  lowest(name) {
    const all = (this.scrapes.at(-1)?.of.get(name) ?? []).map(([, v]) => v);
    return all.length ? Math.min(...all) : null;
  }
}

// One server on the page: its figures second by second, its charts, its state.
// Two lanes beside each other compare two servers.
import { Grid, Poller, askJSON, fill, legend, now } from "./series.js";
import { LineChart } from "./chart.js";
import { HeatChart } from "./heat.js";
import { Marks } from "./marks.js";
import { Alerts, Head, figuresOf } from "./head.js";
import { Tables } from "./tables.js";

export const SPAN = 15 * 60; // seconds that are kept

// READ are the charts that the key figures are read off: those are asked for out of
// sight, too, or the figures above would stand still on every small screen.
const READ = new Set(["answers", "latency", "pool", "cpu", "logs"]);

// OLD is how many seconds without a word of the server make the last one old.
const OLD = 8;

export class Lane {
  // places are where the parts go; page has the view that all charts share.
  constructor(places, page, target, number, several) {
    Object.assign(this, { page, target, api: page.api, firing: [], nameless: [] });
    const grid = () => new Grid(SPAN, now());
    this.poller = new Poller();
    this.alerts = grid();
    this.up = grid();
    this.failed = grid();
    this.behind = grid();
    this.full = grid();
    this.marks = new Marks(this.up, this.failed, this.behind);
    this.head = new Head(places.heads, target, several);
    this.list = new Alerts(places.alerts, target, several);
    this.tables = new Tables(places.tables, page.spec.tables, target, this.api, several);
    this.charts = page.spec.charts.map((spec) => {
      const Kind = spec.kind === "heat" ? HeatChart : LineChart;
      const run = { target, name: several ? target : "", alerts: this.alerts, marks: this.marks, zoom: (a, b) => page.drag(a, b), soon: () => page.soon(), asked: () => this.asked, nameless: () => this.nameless };
      const chart = new Kind(places.charts, spec, run, grid(), "chart-" + spec.id + (number ? "-" + (number + 1) : ""));
      chart.fresh = true;
      return chart;
    });
  }

  remove() {
    this.gone = true;
    for (const c of this.charts) c.remove();
    for (const part of [this.head.root, this.list.root, this.tables.root]) part.remove();
  }

  // ask fills the grids by the query API: all of the span at first, then what is
  // new. Charts that are out of sight wait until they are looked at, but for those
  // that the figures are read off.
  async ask() {
    const t = Math.floor(now());
    const due = new Map(); // start -> what to ask from there
    const update = (grid, queries) => {
      grid.advance(t);
      // The last second is asked for again: its tick may have come after it.
      const from = Math.max(t - SPAN + 1, (grid.asked ?? 0) - 1);
      if (!due.has(from)) due.set(from, []);
      for (const q of queries) due.get(from).push({ grid, ...q });
    };
    const { alerts, marks, full } = this.page.spec;
    update(this.alerts, [{ expr: alerts, legend: "{{severity}} {{alertname}}" }]);
    update(this.up, [{ expr: marks.up, legend: "up" }]);
    update(this.failed, [{ expr: marks.failed, legend: "{{source}}" }]);
    update(this.behind, [{ expr: marks.behind, legend: "{{file}}" }]);
    update(this.full, [{ expr: full, legend: "full" }]);
    for (const c of this.charts) {
      if (c.fresh || c.visible || READ.has(c.spec.id)) update(c.grid, c.spec.series);
    }
    const work = [...due].map(async ([from, asked]) => {
      const results = await this.api.range(asked.map((q) => fill(q.expr, this.target)), from, t);
      if (this.gone) return;
      for (const { metric, values } of results) {
        const { grid, legend: name } = asked[Number(metric.line)];
        for (const [at, value] of values) grid.set(legend(name, metric), at, Number(value));
      }
      for (const { grid } of asked) grid.asked = t;
    });
    work.push(this.api.alerts().then((a) => (this.firing = a)));
    await this.all(work);
    for (const c of this.charts) c.fresh = false;
  }

  // poll works the figures out of /metrics, where there is no engine to ask.
  async poll() {
    const t = now();
    await this.poller.poll(this.target, t);
    if (this.gone) return;
    const one = (grid, name, value) => {
      grid.advance(t);
      if (value !== null && value !== undefined) grid.set(name, Math.floor(t), value);
    };
    const of = this.poller.scrapes.at(-1).of;
    one(this.up, "up", of.get("target_up")?.[0][1]);
    one(this.full, "full", this.poller.lowest("logfs_full_seconds"));
    for (const g of [this.alerts, this.failed, this.behind]) g.advance(t);
    for (const [labels, v] of of.get("sidecar_source_up") ?? []) if (v === 0) one(this.failed, labels.source, 0);
    for (const [labels, v] of of.get("logfile_lag_seconds") ?? []) if (v > 5) one(this.behind, labels.file, v);
    for (const c of this.charts) {
      c.grid.advance(t);
      for (const s of c.spec.series) {
        if (!s.local) continue;
        for (const [labels, value] of this.poller.values(s.local)) c.grid.set(legend(s.legend, labels), Math.floor(t), value);
      }
    }
    this.firing = null;
  }

  async all(work) {
    const failed = (await Promise.allSettled(work)).find((r) => r.status === "rejected");
    if (failed) throw failed.reason;
  }

  // tick brings everything up to now. The tables change slowly and cost more.
  async tick() {
    const work = [this.api ? this.ask() : this.poll()];
    if (!(Date.now() < this.tabled + 5000)) {
      this.tabled = Date.now();
      work.push(this.tables.update());
    }
    await this.all(work);
    this.asked = true;
  }

  // tell takes what /status.json says of the server.
  tell(server) {
    this.marks.files = new Map((server?.sources ?? []).filter((s) => s.file).map((s) => [s.file, s.name]));
    const reasons = ["thread_names_merged", "no_native_thread_names", "virtual_threads"];
    this.nameless = (server?.sources ?? []).flatMap((s) => s.blind ?? []).filter((b) => reasons.includes(b.reason)).map((b) => b.detail);
  }

  // advance lets the time go on while no answer comes, so that what was last seen is
  // not taken for now's.
  advance() {
    for (const g of [this.alerts, this.up, this.failed, this.behind, this.full, ...this.charts.map((c) => c.grid)]) g.advance(now());
  }

  begun() {
    return Math.min(...this.charts.map((c) => c.grid.first()));
  }

  draw(from, to) {
    for (const c of this.charts) if (c.visible) c.draw(from, to);
    const blind = (source) => this.marks.of(new Set([source]), this.up.end).some((m) => m.now);
    const figures = figuresOf(this.charts, this.full.last("full"), blind);
    const up = this.up.last("up");
    const since = this.up.seen && this.up.end - this.up.seen > OLD ? this.up.seen : null;
    const firing = this.head.say({ up: up === null ? null : up === 1, alerts: this.firing, figures, asked: this.asked, since });
    this.head.figures(figures);
    if (this.api) this.list.show(this.alerts, firing, Math.max(this.begun(), this.alerts.end - SPAN));
    this.since = since;
    this.alarm = firing.map((a) => a.labels.alertname).sort().join(", ");
  }
}

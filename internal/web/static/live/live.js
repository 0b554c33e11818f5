// The live page: the charts of the Load-run board, drawn as the run happens.
// Without this script the page is complete as it stands, but still.
import { API, Grid, Poller, fill, legend } from "./series.js";
import { Chart, format } from "./chart.js";

const SPAN = 15 * 60; // seconds that are kept

const live = document.getElementById("live");
const choose = document.getElementById("live-target");
const span = document.getElementById("live-span");
const pause = document.getElementById("live-pause");
const state = document.getElementById("live-state");
const place = document.getElementById("live-charts");
const tables = document.getElementById("live-tables");
const bands = document.getElementById("live-alerts");

const now = () => Date.now() / 1000;

// say tells the state of the page, and tells a screen reader only what is new.
function say(text) {
  if (state.textContent !== text) state.textContent = text;
}

class Page {
  constructor(spec, api) {
    this.spec = spec;
    this.api = api;
    this.paused = false;
    this.shift = 0; // the server's clock less ours, in seconds
    this.turn = 0; // grows with each change of target: answers of an older one are dropped
  }

  // show starts over with one server.
  async show(target) {
    this.turn++;
    this.target = target;
    this.since = now();
    this.poller = new Poller();
    this.alerts = new Grid(SPAN, now());
    place.replaceChildren();
    tables.replaceChildren(...(this.api ? this.spec.tables : []).map((t) => Object.assign(document.createElement("table"), { id: "table-" + t.label })));
    this.charts = this.spec.charts.map((c) => {
      const chart = new Chart(place, c, target, this.alerts, new Grid(SPAN, now()));
      chart.fresh = true;
      return chart;
    });
    await this.tick();
  }

  async tick() {
    if (this.busy || this.paused || document.hidden) return;
    this.busy = true;
    const turn = this.turn;
    try {
      await (this.api ? this.ask(turn) : this.poll(turn));
      if (turn === this.turn) {
        say(this.api ? `${this.target}, each second` : `${this.target}, each second since this page was opened`);
      }
    } catch (e) {
      say(`The sidecar does not answer (${e.message}). The charts stand still.`);
    } finally {
      this.busy = false;
    }
    if (turn === this.turn) this.draw();
  }

  // ask fills the grids by the query API: all of the span at first, then what is
  // new. Charts that are out of sight wait until they are looked at.
  async ask(turn) {
    const t = Math.floor(now());
    const due = new Map(); // start -> what to ask from there
    const update = (grid, queries) => {
      grid.advance(t);
      // Two seconds are asked for again: the last tick may have come late.
      const from = Math.max(t - SPAN + 1, (grid.asked ?? 0) - 2);
      if (!due.has(from)) due.set(from, []);
      for (const q of queries) due.get(from).push({ grid, ...q });
    };
    for (const c of this.charts) {
      if (c.fresh || c.visible) update(c.grid, c.spec.series);
    }
    update(this.alerts, [{ expr: this.spec.alerts, legend: "{{alertname}}" }]);
    const work = [...due].map(async ([from, asked]) => {
      const results = await this.api.range(asked.map((q) => fill(q.expr, this.target)), from, t);
      if (turn !== this.turn) return;
      for (const { metric, values } of results) {
        const { grid, legend: name } = asked[Number(metric.line)];
        for (const [at, value] of values) grid.set(legend(name, metric), at, Number(value));
      }
      for (const { grid } of asked) grid.asked = t;
    });
    if (t % 5 === 0 || !this.tabled) {
      this.tabled = true;
      work.push(...this.spec.tables.map((table) => this.table(table)));
    }
    const failed = (await Promise.allSettled(work)).find((r) => r.status === "rejected");
    if (failed) throw failed.reason;
    for (const c of this.charts) c.fresh = false;
  }

  async poll(turn) {
    const t = now();
    await this.poller.poll(this.target, t);
    if (turn !== this.turn) return;
    for (const c of this.charts) {
      c.grid.advance(t);
      for (const s of c.spec.series) {
        if (!s.local) continue;
        for (const [labels, value] of this.poller.values(s.local)) c.grid.set(legend(s.legend, labels), Math.floor(t), value);
      }
    }
  }

  draw() {
    const firing = [...this.alerts.rows.keys()].sort();
    bands.textContent = firing.length ? "Alerts in this time: " + firing.map((a) => (this.alerts.last(a, 3) ? `${a} (firing)` : a)).join(", ") : this.api ? "No alert fired in this time." : "";
    bands.classList.toggle("error", firing.some((a) => this.alerts.last(a, 3)));
    // A chart of the last minutes would be empty but for a sliver when the history
    // has just begun.
    const begun = Math.min(...this.charts.map((c) => c.grid.first()));
    const wide = Math.min(Number(span.value), Math.max(60, Math.floor(now()) - begun));
    for (const c of this.charts) if (c.visible) c.draw(wide, this.since);
  }

  async table({ title, label, unit, expr }) {
    const rows = (await this.api.instant(fill(expr, this.target))).map((r) => [r.metric[label] ?? "", Number(r.value[1])]).sort((a, b) => b[1] - a[1]);
    const table = document.getElementById("table-" + label);
    const caption = document.createElement("caption");
    caption.textContent = title;
    table.replaceChildren(caption);
    for (const [name, value] of rows.length ? rows : [["none", null]]) {
      const tr = table.insertRow();
      tr.insertCell().textContent = name; // text, whatever a log made of it
      const td = tr.insertCell();
      td.className = "num";
      td.textContent = value === null ? "" : format(value, unit);
    }
  }
}

// upAndDown keeps the state of the servers in the page below, and says when the
// list itself is no longer right.
async function upAndDown() {
  try {
    const r = await fetch("/status.json", { signal: AbortSignal.timeout(5000), cache: "no-store" });
    const targets = (await r.json()).targets ?? [];
    for (const t of targets) {
      const mark = document.getElementById(t.target.name)?.querySelector("h2 span");
      if (!mark) continue;
      mark.textContent = t.up ? "up" : "down";
      mark.className = t.up ? "up" : "down";
    }
    const names = targets.map((t) => t.target.name).sort().join();
    const shown = [...choose.options].map((o) => o.value).sort().join();
    document.getElementById("live-changed").hidden = names === shown;
  } catch {
    // tick says that the sidecar does not answer.
  }
}

async function start() {
  for (const section of document.querySelectorAll("section.target")) choose.add(new Option(section.id));
  if (choose.options.length === 0) return;
  live.hidden = false;
  const spec = await (await fetch("/static/live/charts.json")).json();
  const page = new Page(spec, "engine" in live.dataset ? new API() : null);

  const asked = new URLSearchParams(location.hash.slice(1)).get("target");
  if ([...choose.options].some((o) => o.value === asked)) choose.value = asked;
  choose.addEventListener("change", () => {
    history.replaceState(null, "", "#target=" + encodeURIComponent(choose.value));
    page.tabled = false;
    page.show(choose.value);
  });
  span.addEventListener("change", () => page.draw());
  pause.addEventListener("click", () => {
    page.paused = !page.paused;
    pause.setAttribute("aria-pressed", String(page.paused));
    pause.textContent = page.paused ? "Go on" : "Pause";
    if (page.paused) say("Paused");
    page.tick();
  });
  document.addEventListener("visibilitychange", () => page.tick());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const c of page.charts) c.forget();
    page.draw();
  });
  await page.show(choose.value);
  setInterval(() => page.tick(), 1000);
  setInterval(upAndDown, 5000);
}

start().catch((e) => {
  live.hidden = false;
  say(`The charts can't be drawn: ${e.message}`);
});

// One chart: a figure with a question, uPlot's canvas, the values in words, and
// the PromQL behind it.
/* global uPlot */
import { fill } from "./series.js";

// Colours that are told apart on white and on black, also by most who see few.
const COLOURS = ["#2f81f7", "#d1641c", "#8b5cf6", "#1a9a6c", "#c2410c", "#b5489a", "#7a8a00", "#6b7280"];
const BAD = "#d1242f";

// A drag across one chart zooms all; they run again after a double click.
let zoomed = false;

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

// clock is the time of the viewer's own place, in 24 hours as logs have it.
const clock = (t, step) => new Date(t * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: step < 60 ? "2-digit" : undefined });

export class Chart {
  constructor(place, spec, target, alerts, grid) {
    Object.assign(this, { spec, grid, alerts, visible: true });
    this.queries = spec.series.map((s) => fill(s.expr, target)).join("\n");
    this.root = document.createElement("figure");
    this.root.className = "chart";
    this.root.id = "chart-" + spec.id;
    this.root.innerHTML =
      '<figcaption><h3></h3><p class="dim"></p></figcaption><div class="plot" role="img"></div><p class="stale" hidden></p><ul class="legend"></ul><details><summary>PromQL</summary><pre></pre><button type="button">Copy</button></details>';
    const part = (q) => this.root.querySelector(q);
    part("h3").textContent = spec.title;
    part("p.dim").textContent = spec.about;
    part("pre").textContent = this.queries;
    part("button").setAttribute("aria-label", `Copy the PromQL of: ${spec.title}`);
    part("button").addEventListener("click", (e) => this.copy(e.target));
    this.plotAt = part(".plot");
    this.stale = part(".stale");
    this.legend = part(".legend");
    place.append(this.root);
    new IntersectionObserver(([e]) => (this.visible = e.isIntersecting)).observe(this.root);
    new ResizeObserver(() => this.plot?.setSize(this.size())).observe(this.plotAt);
  }

  async copy(button) {
    try {
      await navigator.clipboard.writeText(this.queries);
      button.textContent = "Copied";
    } catch {
      // A page without TLS may not write the clipboard: select it for the hand.
      getSelection().selectAllChildren(this.root.querySelector("pre"));
      button.textContent = "Selected: press Ctrl+C";
    }
  }

  size() {
    return { width: Math.max(this.plotAt.clientWidth, 200), height: 180 };
  }

  // forget makes the next draw start with new colours.
  forget() {
    this.plot?.destroy();
    this.plot = this.names = null;
  }

  draw(span, since) {
    const names = [...this.grid.rows.keys()].sort();
    if (!this.plot || names.join("\0") !== this.names) this.make(names);
    this.names = names.join("\0");
    const times = this.grid.times();
    this.plot.setData([times, ...names.map((n) => this.grid.rows.get(n))], false);
    this.plot.batch(() => {
      if (!zoomed) this.plot.setScale("x", { min: this.grid.end - span, max: this.grid.end });
      else this.plot.redraw();
    });
    this.words(names, since);
  }

  // words are what the picture shows, for those who don't see it, and the mark of
  // a source that stands still.
  words(names, since) {
    const values = names.map((n) => format(this.grid.last(n), this.spec.unit));
    if (this.figures?.length !== names.length || this.worded !== this.names) {
      this.worded = this.names;
      this.figures = names.map(() => document.createElement("b"));
      this.legend.replaceChildren(
        ...names.map((n, i) => {
          const li = document.createElement("li");
          const dot = document.createElement("span");
          dot.className = "dot";
          dot.style.background = this.colour(n, i);
          li.append(dot, `${n} `, this.figures[i]);
          return li;
        }),
      );
    }
    values.forEach((v, i) => this.figures[i].textContent !== v && (this.figures[i].textContent = v));
    const label = `${this.spec.title} Now: ${names.map((n, i) => `${n} ${values[i]}`).join(", ") || "no data"}`;
    if (this.label !== label) this.plotAt.setAttribute("aria-label", (this.label = label));
    const old = this.grid.end - this.grid.seen;
    let said = "";
    if (this.grid.seen && old > 5) said = `No data for ${old} s`;
    else if (!this.grid.seen && this.grid.end - since > 5) said = "No data";
    this.stale.hidden = said === "";
    if (this.stale.textContent !== said) this.stale.textContent = said;
    this.root.classList.toggle("frozen", said !== "");
  }

  dashed(name) {
    return this.spec.series.some((s) => s.dashed && new RegExp("^" + s.legend.replace(/{{\w+}}/g, ".*") + "$").test(name));
  }

  colour(name, i) {
    return name === "turned away" || name === "5xx" ? BAD : this.dashed(name) ? COLOURS[7] : COLOURS[i % 7];
  }

  make(names) {
    this.plot?.destroy();
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--dim");
    const line = style.getPropertyValue("--line");
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line }, font: "11px system-ui, sans-serif" };
    const unit = this.spec.unit;
    this.plot = new uPlot(
      {
        ...this.size(),
        legend: { show: false },
        cursor: { sync: { key: "run", scales: ["x", null] }, drag: { x: true, y: false } },
        scales: { x: { time: true }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.05 : 1] } },
        axes: [{ ...axis, size: 28, values: (_, ticks, __, ___, step) => ticks.map((t) => clock(t, step)) }, { ...axis, size: 64, values: (_, ticks) => ticks.map((v) => format(v, unit)) }],
        series: [{}, ...names.map((n, i) => ({ label: n, stroke: this.colour(n, i), width: 1.5, dash: this.dashed(n) ? [6, 4] : undefined, points: { show: false }, spanGaps: false, value: (_, v) => format(v, unit) }))],
        hooks: {
          drawClear: [(u) => this.bands(u)],
          setSelect: [(u) => (zoomed ||= u.select.width > 0)],
          setCursor: [(u) => this.under(u)],
        },
      },
      [this.grid.times(), ...names.map((n) => this.grid.rows.get(n))],
      this.plotAt,
    );
    this.plot.over.addEventListener("dblclick", () => (zoomed = false));
  }

  // under shows the values below the cursor instead of the newest.
  under(u) {
    const i = u.cursor.idx;
    if (i === null || i === undefined) return;
    this.figures?.forEach((b, n) => (b.textContent = format(u.data[n + 1]?.[i], this.spec.unit)));
  }

  // bands colours the times in which an alert fired, however many did.
  bands(u) {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.fillStyle = BAD + "22";
    const t0 = this.alerts.end - this.alerts.span + 1;
    const rows = [...this.alerts.rows.values()];
    const fired = (i) => i < this.alerts.span && rows.some((row) => row[i] !== null);
    for (let i = 0; i < this.alerts.span; i++) {
      if (!fired(i)) continue;
      const from = i;
      while (fired(i + 1)) i++;
      const left = Math.max(u.valToPos(t0 + from, "x", true), bbox.left);
      const right = Math.min(u.valToPos(t0 + i + 1, "x", true), bbox.left + bbox.width);
      if (right > left) ctx.fillRect(left, bbox.top, right - left, bbox.height);
    }
    ctx.restore();
  }
}

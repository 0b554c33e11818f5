// One chart: a figure with a question, uPlot's canvas, the values in words, and
// the PromQL behind it.
/* global uPlot */
import { fill } from "./series.js";
import { drawBands, drawMarks, masked } from "./marks.js";
import { clock, colour, copy, format, make, put, shades } from "./words.js";

const HEIGHT = 190;

// Chart is what all kinds of charts have in common. A kind says what its series
// are (lines), what its y axis is (top, axisY), and what it shows in words.
export class Chart {
  // run is what all charts share: the view, the alerts and marks of the server,
  // and zoom, which all of them follow.
  constructor(place, spec, run, grid, id) {
    Object.assign(this, { spec, grid, run, visible: true, wide: 300 });
    this.sources = new Set([spec.source, ...spec.series.map((s) => s.source ?? spec.source)]);
    this.queries = spec.series.map((s) => fill(s.expr, run.target)).join("\n");
    this.root = make("figure", "chart");
    this.root.id = id;
    this.root.chart = this; // for whoever opens the console, and for the tests
    const caption = make("figcaption");
    const title = make("h3", "", spec.title);
    if (run.name) title.append(" ", make("span", "of", run.name));
    caption.append(title, make("p", "dim", spec.about));
    this.plotAt = make("div", "plot");
    Object.assign(this.plotAt, { tabIndex: 0, role: "group" });
    this.plotAt.setAttribute("aria-roledescription", "chart");
    this.stale = make("p", "stale");
    this.legend = make("ul", "legend");
    const more = make("details");
    const pre = make("pre", "", this.queries);
    pre.tabIndex = 0; // it may scroll
    const button = make("button", "", "Copy");
    button.type = "button";
    button.setAttribute("aria-label", `Copy the PromQL of: ${spec.title}`);
    button.addEventListener("click", () => copy(button, this.queries, pre));
    more.append(make("summary", "", "PromQL"), pre, button);
    more.firstChild.setAttribute("aria-label", `PromQL of: ${spec.title}`);
    const box = make("div", "box");
    box.append(this.plotAt, this.stale);
    this.root.append(caption, box, this.legend, more);
    place.append(this.root);
    // One that is out of sight is not drawn; it is when it comes into it.
    this.seen = new IntersectionObserver(([e]) => {
      this.visible = e.isIntersecting;
      if (this.visible) run.soon();
    });
    this.seen.observe(this.root);
    // Width is measured when it changes, and not at each draw: that would cost a
    // layout of the page each time.
    this.sized = new ResizeObserver(([e]) => {
      this.wide = Math.max(Math.floor(e.contentRect.width), 200);
      this.plot?.setSize(this.size());
    });
    this.sized.observe(this.plotAt);
  }

  remove() {
    this.seen.disconnect();
    this.sized.disconnect();
    this.plot?.destroy();
    this.root.remove();
  }

  size() {
    return { width: this.wide, height: HEIGHT };
  }

  // forget makes the next draw start with new colours.
  forget() {
    this.plot?.destroy();
    this.plot = this.names = this.worded = null;
  }

  // measure is the greatest value in view; where two servers are compared, both
  // charts of a question have the axis of the greater.
  measure(from, to) {
    this.own = this.most(from, to);
  }

  draw(from, to) {
    const names = this.namesNow();
    const key = names.join("\0");
    this.marks = this.run.marks.of(this.sources, this.grid.end);
    this.top = Math.max(this.own, this.peer?.own ?? 0);
    if (!this.plot || key !== this.names) this.begin(names);
    this.names = key;
    this.plot.batch(() => {
      this.plot.setData(this.data(names), false);
      this.plot.setScale("x", { min: from, max: to });
    });
    this.words(names);
  }

  begin(names) {
    this.plot?.destroy();
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--dim").trim();
    const line = style.getPropertyValue("--grid").trim();
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, size: 4 }, font: "11px system-ui, sans-serif" };
    this.plot = new uPlot(
      {
        ...this.size(),
        padding: [10, 28, 0, 0], // half of a time to the second is right of the last tick
        legend: { show: false },
        cursor: { sync: { key: "run", scales: ["x", null] }, drag: { x: true, y: false, setScale: false }, points: { show: this.dots } },
        scales: { x: { time: true }, y: this.scaleY() },
        axes: [{ ...axis, size: 26, space: 70, values: (_, ticks, __, ___, step) => ticks.map((t) => clock(t, step)) }, { ...axis, size: 62, ...this.axisY() }],
        series: [{}, ...this.lines(names)],
        hooks: {
          drawClear: [(u) => (drawBands(u, this.run.alerts, shades()), drawMarks(u, this.marks, ink), this.below?.(u))],
          setSelect: [
            (u) => {
              if (u.select.width < 4) return;
              const [a, b] = [u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")];
              u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
              this.run.zoom(a, b);
            },
          ],
          setCursor: [(u) => this.under(u.cursor.idx)],
        },
      },
      this.data(names),
      this.plotAt,
    );
  }

  // step moves the cursor of all charts by points, for the keyboard.
  step(by) {
    const u = this.plot;
    if (!u) return;
    const at = u.cursor.idx ?? u.valToIdx(u.scales.x.max);
    const next = Math.min(Math.max(at + by, u.valToIdx(u.scales.x.min)), u.valToIdx(u.scales.x.max));
    u.setCursor({ left: u.valToPos(u.data[0][next], "x"), top: u.over.clientHeight / 2 }, true, true);
  }

  // leave takes the cursor off all charts: the legends tell the newest values again.
  leave() {
    this.plot?.setCursor({ left: -10, top: -10 }, true, true);
  }

  // tell is what stands below the cursor, to be read aloud.
  tell() {
    const i = this.plot?.cursor.idx ?? null;
    return i === null ? "" : `${clock(this.plot.data[0][i])}: ${this.told(i)}`;
  }

  // bare says why a pool's limit stands there without its threads: a line alone
  // would look like a pool that nobody uses.
  bare() {
    const rows = this.grid.rows;
    const alone = [...rows.keys()].some((n) => n.startsWith("limit of ") && !rows.has(n.slice("limit of ".length)));
    return this.spec.id === "pool" && alone ? this.run.nameless().join("; ") : "";
  }

  // words are what the picture shows, for those who don't see it, and the mark of
  // a source that stands still.
  words(names) {
    const said = this.newest(names);
    const label = `${this.spec.title} ${this.run.name ? `${this.run.name}. ` : ""}Now: ${said || "no data"}`;
    if (this.label !== label) this.plotAt.setAttribute("aria-label", (this.label = label));
    const old = this.grid.end - this.grid.seen;
    const hindered = this.marks.filter((m) => m.now).map((m) => m.why);
    let why = hindered.join(", ");
    if (!why && this.grid.seen && old > 8) why = `no data for ${Math.round(old)} s`;
    const bare = why || !this.grid.seen ? "" : this.bare();
    put(this.stale, why ? `Standing still: ${why}` : !this.grid.seen && this.run.asked() ? `No data: ${this.spec.none}` : bare && `No data but the limit: ${bare}`);
    this.root.classList.toggle("frozen", why !== "");
    this.root.classList.toggle("none", !this.grid.seen || bare !== "");
  }
}

// LineChart draws a line for each series.
export class LineChart extends Chart {
  dots = true;

  namesNow() {
    const order = (n) => (this.dashed(n) ? "2" : n === "turned away" ? "1" : "0") + n;
    return [...this.grid.rows.keys()].sort((a, b) => (order(a) < order(b) ? -1 : 1));
  }

  most(from, to) {
    return this.grid.most(from, to);
  }

  data(names) {
    const t0 = this.grid.end - this.grid.span + 1;
    return [this.grid.times(), ...names.map((n) => masked(this.grid.rows.get(n), this.marks ?? [], t0))];
  }

  scaleY() {
    return { range: () => [0, this.top > 0 ? this.top * 1.08 : 1] };
  }

  axisY() {
    // Sizes are told in powers of 1024, so the axis is divided by them.
    const incrs = this.spec.unit === "bytes" ? Array.from({ length: 45 }, (_, i) => 2 ** i) : undefined;
    return { incrs, values: (_, ticks) => ticks.map((v) => format(v, this.spec.unit)) };
  }

  lines(names) {
    return names.map((n, i) => {
      const dashed = this.dashed(n);
      const stroke = colour(n, i, dashed);
      // Lines of one pixel, and one area at most: without a graphics card wider lines
      // and more areas double what a chart costs.
      return { label: n, stroke, fill: i === 0 && !dashed ? stroke + "1c" : undefined, width: 1, dash: dashed ? [6, 4] : undefined, points: { show: false }, spanGaps: false };
    });
  }

  dashed(name) {
    return this.spec.series.some((s) => s.dashed && new RegExp("^" + s.legend.replace(/{{\w+}}/g, ".*") + "$").test(name));
  }

  newest(names) {
    if (this.worded !== this.names) {
      this.worded = this.names;
      this.figures = names.map(() => make("b"));
      this.legend.replaceChildren(
        ...names.map((n, i) => {
          const li = make("li");
          const dot = make("span", this.dashed(n) ? "dot dashed" : "dot");
          dot.style.background = dot.style.borderColor = colour(n, i, this.dashed(n));
          li.append(dot, `${n} `, this.figures[i]);
          return li;
        }),
      );
    }
    const values = names.map((n) => format(this.grid.last(n), this.spec.unit));
    if (this.plot.cursor.idx === null || this.plot.cursor.idx === undefined) values.forEach((v, i) => put(this.figures[i], v));
    else this.under(this.plot.cursor.idx);
    return names.map((n, i) => `${n} ${values[i]}`).join(", ");
  }

  told(i) {
    return this.namesNow().map((n, k) => `${n} ${format(this.plot.data[k + 1]?.[i], this.spec.unit)}`).join(", ");
  }

  // under shows the values below the cursor instead of the newest.
  under(i) {
    if (i === null || i === undefined || !this.figures) return;
    this.figures.forEach((b, n) => put(b, format(this.plot.data[n + 1]?.[i], this.spec.unit)));
  }
}

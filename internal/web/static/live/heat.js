// The heat map: how answers spread over durations, second by second. A column
// is a second, a cell a bucket of the histogram, and its shade how many answers
// fell into it.
import { Chart } from "./chart.js";
import { masked } from "./marks.js";
import { clock, format, make, put, shades } from "./words.js";

export class HeatChart extends Chart {
  dots = false;

  constructor(...of) {
    super(...of);
    this.legend.classList.add("scale");
  }

  namesNow() {
    return ["cells"]; // one series that draws nothing: cells are painted below it
  }

  // bounds are the upper bounds of the buckets, lowest first.
  bounds() {
    const all = [...this.grid.rows.keys()].map((le) => [le === "+Inf" ? Infinity : Number(le), le]);
    return all.sort((a, b) => a[0] - b[0]);
  }

  // measure counts the cells in view, as differences of the buckets.
  most(from, to) {
    const bounds = this.bounds();
    const span = this.grid.span;
    const t0 = this.grid.end - span + 1;
    const marks = this.run.marks.of(this.sources, this.grid.end);
    const rows = bounds.map(([, le]) => masked(this.grid.rows.get(le), marks, t0));
    this.cells = rows.map((row, b) => row.map((v, i) => (v === null ? null : Math.max(0, v - (b > 0 ? (rows[b - 1][i] ?? 0) : 0)))));
    this.les = bounds.map(([le]) => le);
    this.most1 = 0;
    let low = -1;
    let high = -1;
    const [a, z] = [Math.max(0, Math.ceil(from - t0)), Math.min(span - 1, Math.floor(to - t0))];
    this.cells.forEach((row, b) => {
      let top = 0;
      for (let i = a; i <= z; i++) if (row[i] > top) top = row[i];
      if (top <= 0.01) return; // increase() is an estimate, and so is a difference of two
      if (low < 0) low = b;
      high = b;
      this.most1 = Math.max(this.most1, top);
    });
    this.low = low;
    return high + 1; // the axis counts buckets
  }

  data() {
    const times = this.grid.times();
    this.nothing = this.nothing?.length === times.length ? this.nothing : new Array(times.length).fill(null);
    return [times, this.nothing];
  }

  range() {
    const lows = [this.low, this.peer?.low].filter((l) => l >= 0);
    const low = lows.length ? Math.max(0, Math.min(...lows) - 1) : 0;
    return [low, Math.max(this.top, low + 2) + 0.25];
  }

  scaleY() {
    return { range: () => this.range() };
  }

  // The ticks are bounds, and as many of them as there is room for.
  axisY() {
    return {
      splits: () => {
        const [low, high] = this.range();
        const every = Math.ceil((high - low) / 7);
        const out = [];
        for (let b = low; b <= Math.floor(high); b += every) out.push(b);
        return out;
      },
      values: (_, ticks) => ticks.map((b) => (b === 0 ? "0 s" : Number.isFinite(this.les?.[b - 1]) ? format(this.les[b - 1], "s") : this.les?.length ? "longer" : "")),
    };
  }

  lines() {
    return [{ stroke: "transparent", points: { show: false } }];
  }

  // below paints the cells. They are written into an image of a pixel a cell,
  // which the canvas stretches: thousands of rectangles a second would cost more
  // than all other charts.
  below(u) {
    if (!this.cells?.length || this.top === 0) return;
    const span = this.grid.span;
    const buckets = this.cells.length;
    if (this.image?.width !== span || this.image.height !== buckets) {
      this.image = new ImageData(span, buckets);
      this.tile = new OffscreenCanvas(span, buckets);
    }
    const most = Math.max(this.most1, this.peer?.most1 ?? 0);
    const { low, high } = shades();
    const scale = 1 / Math.log1p(most || 1);
    const px = this.image.data.fill(0);
    for (let b = 0; b < buckets; b++) {
      const row = this.cells[b];
      for (let i = 0; i < span; i++) {
        const v = row[i];
        if (!(v > 0.01)) continue;
        const f = Math.min(1, Math.log1p(v) * scale);
        const at = ((buckets - 1 - b) * span + i) * 4;
        for (let c = 0; c < 3; c++) px[at + c] = low[c] + (high[c] - low[c]) * f;
        px[at + 3] = 255;
      }
    }
    this.tile.getContext("2d").putImageData(this.image, 0, 0);
    const { ctx, bbox } = u;
    const t0 = this.grid.end - span + 1;
    const left = u.valToPos(t0 - 1, "x", true); // a column ends at its second
    const right = u.valToPos(this.grid.end, "x", true);
    const top = u.valToPos(buckets, "y", true);
    const bottom = u.valToPos(0, "y", true);
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(this.tile, left, top, right - left, bottom - top);
    ctx.restore();
  }

  band(b) {
    const from = b > 0 ? format(this.les[b - 1], "s") : "0 s";
    return Number.isFinite(this.les[b]) ? `${from} to ${format(this.les[b], "s")}` : `more than ${from}`;
  }

  // fullest says in words which bucket most answers of a second fell into.
  fullest(i) {
    let best = -1;
    let all = 0;
    this.cells?.forEach((row, b) => {
      const v = row[i] ?? 0;
      all += v;
      if (v > 0.01 && (best < 0 || v > this.cells[best][i])) best = b;
    });
    return best < 0 ? "" : `most answers took ${this.band(best)} (${Math.round((this.cells[best][i] / all) * 100)} %)`;
  }

  newest() {
    if (this.worded !== this.names) {
      this.worded = this.names;
      const { low, high } = shades();
      const ramp = make("span", "ramp");
      ramp.style.background = `linear-gradient(to right, rgb(${low}), rgb(${high}))`;
      const li = make("li");
      this.figure = make("b");
      this.mostAt = make("span");
      li.append("few ", ramp, " ", this.mostAt);
      const now = make("li");
      now.append(this.figure);
      this.legend.replaceChildren(li, now);
    }
    const most = Math.max(this.most1, this.peer?.most1 ?? 0);
    put(this.mostAt, most ? `${format(most, "none")} in 10 s` : "many");
    let said = "";
    for (let i = this.grid.span - 1; i >= this.grid.span - 5 && !said; i--) said = this.fullest(i);
    const idx = this.plot.cursor.idx;
    if (idx === null || idx === undefined) put(this.figure, said);
    else this.under(idx);
    return said;
  }

  told(i) {
    return this.fullest(i) || "no answers";
  }

  under(i) {
    if (i === null || i === undefined || !this.figure) return;
    put(this.figure, `${clock(this.plot.data[0][i])}: ${this.told(i)}`);
  }
}

// What stands between the reader and the truth of a chart: times in which its
// source was down, behind or not there. They are marked, and what was drawn of
// them would be no figure: a log that nobody reads has no rate of 0.

// Marks of one server, second by second.
export class Marks {
  // up, failed and behind are grids: the server by itself, failed looks by
  // source, and seconds behind by file. files says which source a file is of.
  constructor(up, failed, behind) {
    Object.assign(this, { up, failed, behind, files: new Map() });
  }

  // of lists what hinders the given sources, as spans of seconds, oldest first.
  of(sources, now) {
    const out = [];
    const spans = (grid, row, bad, why) => {
      const t0 = grid.end - grid.span + 1;
      for (let i = 0; i < grid.span; i++) {
        if (!bad(row[i], i)) continue;
        const from = i;
        while (i + 1 < grid.span && bad(row[i + 1], i + 1)) i++;
        out.push({ from: t0 + from, to: t0 + i + 1, now: t0 + i >= now - 3, why: why(row[i]) });
      }
    };
    const up = this.up.rows.get("up");
    if (up) {
      spans(this.up, up, (v) => v === 0, () => "server down");
      const first = up.findIndex((v) => v !== null);
      // The newest seconds may be on their way.
      spans(this.up, up, (v, i) => v === null && i > first && i < this.up.span - 3, () => "nobody looked");
    }
    for (const [source, row] of this.failed.rows) {
      if (sources.has(source)) spans(this.failed, row, (v) => v !== null, () => `${source} can't be read`);
    }
    for (const [file, row] of this.behind.rows) {
      if (sources.has(this.files.get(file))) spans(this.behind, row, (v) => v !== null, (v) => `${file} is ${Math.round(v)} s behind`);
    }
    return out;
  }
}

// masked is a row without the seconds that are marked.
export function masked(row, marks, t0) {
  if (marks.length === 0) return row;
  const out = row.slice();
  for (const m of marks) out.fill(null, Math.max(0, m.from - t0), Math.max(0, m.to - t0));
  return out;
}

let hatch; // one pattern for all charts

function hatching(ctx, ink) {
  if (hatch?.ink === ink) return hatch.pattern;
  const tile = new OffscreenCanvas(8, 8);
  const c = tile.getContext("2d");
  c.strokeStyle = ink;
  c.globalAlpha = 0.35;
  c.lineWidth = 1;
  for (const x of [-4, 4, 12]) {
    c.moveTo(x - 6, 10);
    c.lineTo(x + 6, -2);
  }
  c.stroke();
  hatch = { ink, pattern: ctx.createPattern(tile, "repeat") };
  return hatch.pattern;
}

// drawMarks hatches the marked times of a plot.
export function drawMarks(u, marks, ink) {
  const { ctx, bbox } = u;
  for (const m of marks) {
    const left = Math.max(u.valToPos(m.from, "x", true), bbox.left);
    const right = Math.min(u.valToPos(m.to, "x", true), bbox.left + bbox.width);
    if (right <= left) continue;
    ctx.fillStyle = hatching(ctx, ink);
    ctx.fillRect(left, bbox.top, right - left, bbox.height);
  }
}

// drawBands colours the times in which an alert fired, however many did: red for
// a critical one, else amber, with a stripe at the top that is seen on any ground.
export function drawBands(u, alerts, shades) {
  const { ctx, bbox } = u;
  const t0 = alerts.end - alerts.span + 1;
  const rows = [...alerts.rows];
  if (rows.length === 0) return;
  const level = (i) => {
    let l = 0;
    for (const [name, row] of rows) if (row[i] !== null) l = Math.max(l, name.startsWith("critical ") ? 2 : 1);
    return l;
  };
  for (let i = 0; i < alerts.span; i++) {
    const l = level(i);
    if (l === 0) continue;
    const from = i;
    while (i + 1 < alerts.span && level(i + 1) === l) i++;
    const left = Math.max(u.valToPos(t0 + from, "x", true), bbox.left);
    const right = Math.min(u.valToPos(t0 + i + 1, "x", true), bbox.left + bbox.width);
    if (right <= left) continue;
    ctx.fillStyle = l === 2 ? shades.bad : shades.warn;
    ctx.globalAlpha = 0.1;
    ctx.fillRect(left, bbox.top, right - left, bbox.height);
    ctx.globalAlpha = 0.9;
    ctx.fillRect(left, bbox.top, right - left, 2 * devicePixelRatio);
    ctx.globalAlpha = 1;
  }
}

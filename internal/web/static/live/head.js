// What stands above the charts of one server: the sentence that says what is the
// matter, its key figures, and the alerts of the time in view.
import { clock, format, lasting, make, put } from "./words.js";

const RANK = { critical: 3, warning: 2, info: 1 };
const rank = (a) => RANK[a.labels.severity] ?? 0;

// about says whether an alert is of a server: of its own, or of the sidecar that
// watches it. The dead man's switch, of severity none, fires always.
const about = (target) => (a) => a.labels.severity !== "none" && (!a.labels.target || a.labels.target === target);

export class Head {
  constructor(place, target, several) {
    this.target = target;
    this.root = make("section", "head");
    this.root.setAttribute("aria-label", `State of ${target}`);
    this.line = make("p", "headline");
    this.next = make("p", "next");
    this.tiles = make("dl", "tiles");
    this.root.append(...(several ? [make("h3", "", target)] : []), this.line, this.next, this.tiles);
    place.append(this.root);
    this.shown = new Map();
  }

  // say writes the headline: the gravest alert in its own words, or what the
  // figures themselves say where no rules are evaluated.
  say({ up, alerts, figures, asked, since }) {
    let level = "good";
    let text = `${this.target} works: no alert fires.`;
    let next = "";
    const firing = (alerts ?? []).filter((a) => a.state === "firing").filter(about(this.target)).sort((a, b) => rank(b) - rank(a) || (a.activeAt < b.activeAt ? -1 : 1)); // of equals the first, which is nearer to the cause
    // Nothing is graver than that the server is not there: what fired before goes on
    // for a while, and says nothing any more.
    const gone = up === false && firing.findIndex((a) => a.labels.alertname === "TargetDown");
    if (gone > 0) firing.unshift(...firing.splice(gone, 1));
    // What fired before nobody looked any more may be over, or worse.
    if (since) {
      [level, text] = ["warn", `Nothing is known of ${this.target} since ${clock(since)}.`];
      firing.length = 0;
    } else if (!asked) [level, text] = ["idle", `Asking what ${this.target} does …`];
    else if (up === false && firing[0]?.labels.alertname !== "TargetDown") [level, text] = ["bad", `${this.target} is down.`];
    else if (firing.length > 0) {
      const worst = firing[0];
      level = rank(worst) >= 3 ? "bad" : "warn";
      text = worst.annotations?.summary ?? worst.labels.alertname;
      if (firing.length > 1) text += ` (and ${firing.length - 1} more)`;
      next = worst.annotations?.next ?? "";
    } else if (figures.turned > 0) [level, text] = ["bad", `${this.target} turns requests away: ${format(figures.turned, "reqps")}.`];
    else if (alerts === null) text = figures.turned === 0 ? `${this.target} is up, and turns nobody away.` : `${this.target} is up.`;
    if (this.level !== level) this.root.dataset.level = this.level = level;
    put(this.line, text);
    put(this.next, next);
    this.next.hidden = next === "";
    return firing;
  }

  // tile shows one figure; bad colours it.
  tile(name, value, bad) {
    let t = this.shown.get(name);
    if (!t) {
      const box = make("div");
      t = { box, dd: make("dd") };
      box.append(make("dt", "", name), t.dd);
      this.tiles.append(box);
      this.shown.set(name, t);
    }
    put(t.dd, value);
    if (t.bad !== bad) t.box.className = (t.bad = bad) ? "bad" : "";
  }

  figures(f) {
    this.tile("Answered", format(f.answered, "reqps"), false);
    this.tile("Turned away", format(f.turned, "reqps"), f.turned > 0);
    this.tile("Answers 5xx", format(f.failing, "percentunit"), f.failing >= 0.01);
    this.tile("Slowest 1 %", f.p99 === null ? "–" : `> ${format(f.p99, "s")}`, false);
    this.tile("Fullest pool", f.pool === null ? "–" : format(f.pool, "percentunit"), f.pool >= 1);
    this.tile("CPU of the JVM", format(f.cpu, "percentunit"), f.cpu >= 0.95);
    this.tile("Logs grow", format(f.logs, "Bps"), f.logs >= 2e7);
    this.tile("Disk full", f.full === undefined ? "–" : f.full === null ? "not in sight" : `in ${lasting(f.full)}`, f.full !== null && f.full < 900);
  }
}

// figuresOf reads the key figures off the charts, so that they cost no query. blind
// says of a source that it can't be seen just now: then there is no figure, and no 0.
export function figuresOf(charts, full, blind = () => false) {
  const grid = (id) => charts.find((c) => c.spec.id === id).grid;
  const sum = (g, names) => {
    const all = names.map((n) => g.last(n)).filter((v) => v !== null);
    return all.length ? all.reduce((a, b) => a + b, 0) : null;
  };
  const answers = grid("answers");
  const codes = [...answers.rows.keys()].filter((n) => n !== "turned away");
  const turned = answers.last("turned away");
  // A code without an answer in the last seconds has no value: that is none, if
  // the access log has been seen at all.
  const answered = sum(answers, codes) ?? (codes.length ? 0 : null);
  const failed = answers.last("5xx") ?? 0;
  const pools = grid("pool");
  let pool = null;
  for (const name of pools.rows.keys()) {
    const limit = pools.last(`limit of ${name}`);
    const n = pools.last(name);
    if (limit > 0 && n !== null) pool = Math.max(pool ?? 0, n / limit);
  }
  const logs = grid("logs");
  // What is written into a folder is written into the one above it, too.
  const within = (above) => (dir) => dir !== above && dir.startsWith(above.replace(/\/?$/, "/"));
  const folders = [...logs.rows.keys()].filter((dir) => logs.last(dir) !== null).filter((dir, _, all) => !all.some((above) => within(above)(dir)));
  const seen = (source, value) => (blind(source) ? null : value);
  return {
    answered: seen("accesslog", answered),
    turned: seen("applog", turned),
    failing: seen("accesslog", answered > 0 ? failed / answered : null),
    p99: seen("accesslog", grid("latency").last("p99")),
    pool: seen("process", pool),
    cpu: seen("process", grid("cpu").last("JVM")),
    logs: seen("logdir", sum(logs, folders)),
    full: blind("logdir") ? undefined : full, // null is "not in sight"
  };
}

// Alerts lists what fired in the time that is kept, for those who want the bands
// in words.
export class Alerts {
  constructor(place, target, several) {
    this.target = target;
    this.table = make("table", "alerts");
    this.caption = several ? `Alerts of ${target}` : "Alerts";
    this.root = make("div");
    this.root.append(this.table);
    Object.assign(this.root, { tabIndex: 0, role: "region" }); // it may scroll
    this.root.setAttribute("aria-label", this.caption);
    place.append(this.root);
  }

  show(grid, firing, since) {
    const t0 = grid.end - grid.span + 1;
    const rows = [];
    for (const [name, row] of grid.rows) {
      const [severity, alert] = name.split(" ");
      for (let i = 0; i < grid.span; i++) {
        if (row[i] === null) continue;
        const from = i;
        while (i + 1 < grid.span && row[i + 1] !== null) i++;
        rows.push({ alert, severity, from: t0 + from, to: t0 + i, on: i >= grid.span - 4 });
      }
    }
    rows.sort((a, b) => b.on - a.on || b.to - a.to || (a.alert < b.alert ? -1 : 1));
    const said = (r) => (r.on ? firing.find((a) => a.labels.alertname === r.alert)?.annotations?.summary : "") ?? "";
    const cells = rows.slice(0, 12).map((r) => [r.on ? "firing" : "over", r.severity, r.alert, r.on ? `since ${clock(r.from)}` : `${clock(r.from)} to ${clock(r.to)}`, said(r)]);
    const key = JSON.stringify(cells);
    if (key === this.key) return;
    this.key = key;
    const caption = make("caption", "", cells.length ? this.caption : `${this.caption}: none fired since ${clock(since)}`);
    const body = make("tbody");
    for (const [state, severity, ...words] of cells) {
      const tr = make("tr", `${state} ${severity}`);
      tr.append(make("td", "mark", state), ...words.map((w) => make("td", "", w)));
      body.append(tr);
    }
    this.table.replaceChildren(caption);
    if (!cells.length) return;
    const head = make("thead");
    const tr = make("tr");
    for (const h of ["State", "Alert", "When", "What was seen"]) tr.append(Object.assign(make("th", "", h), { scope: "col" }));
    head.append(tr);
    this.table.append(head, body);
  }
}

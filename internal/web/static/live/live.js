// The live page: the charts of the Load-run board, drawn as the run happens.
// Without this script the page is complete as it stands, but still.
import { API, askJSON, now } from "./series.js";
import { Lane, SPAN } from "./lane.js";
import { Explain } from "./explain.js";
import { clock, isDark, lasting, make, onTheme, put, zone } from "./words.js";

const at = (id) => document.getElementById(id);
const live = at("live");
const choose = at("live-target");
const other = at("live-other");
const span = at("live-span");
const pause = at("live-pause");
const places = { heads: at("live-heads"), charts: at("live-charts"), alerts: at("live-alerts"), tables: at("live-tables") };

class Page {
  constructor(spec, api) {
    Object.assign(this, { spec, api, lanes: [], paused: false, zoomed: null });
  }

  // show starts over with one server, or with two beside each other.
  async show(...targets) {
    for (const l of this.lanes) l.remove();
    const several = targets.length > 1;
    this.zoomed = null;
    this.lanes = targets.map((t, i) => new Lane(places, this, t, i, several));
    live.classList.toggle("two", several);
    if (several) {
      const [a, b] = this.lanes;
      a.charts.forEach((c, i) => {
        [c.peer, b.charts[i].peer] = [b.charts[i], c];
        c.root.after(b.charts[i].root); // one question, both answers
      });
    }
    if (this.status) this.tell(this.status);
    await this.tick();
  }

  async tick() {
    if (this.paused || document.hidden) return;
    if (this.busy) {
      this.late();
      return;
    }
    this.busy = true;
    this.askedAt = Date.now();
    const lanes = this.lanes;
    try {
      const failed = (await Promise.allSettled(lanes.map((l) => l.tick()))).find((r) => r.status === "rejected");
      if (failed) throw failed.reason;
      this.trouble = "";
    } catch (e) {
      this.trouble = `The sidecar does not answer (${e.message}). The charts stand still.`;
    } finally {
      this.busy = false;
    }
    if (lanes === this.lanes) this.draw();
    else this.tick(); // another choice was made meanwhile
  }

  // late says that an answer is long in coming: one that hangs gives no error for a
  // while, and the last figures would stand there as if they were now's.
  late() {
    const waited = Math.round((Date.now() - this.askedAt) / 1000);
    if (waited < 4) return;
    this.trouble = `The sidecar has not answered for ${waited} s. The charts stand still.`;
    for (const l of this.lanes) l.advance();
    this.draw();
  }

  // view is what all charts show: what was zoomed to, or the last minutes, of
  // which there may not be so many yet.
  view() {
    if (this.zoomed) return this.zoomed;
    const end = this.lanes[0].alerts.end;
    const begun = Math.min(...this.lanes.map((l) => l.begun()));
    return [end - Math.min(Number(span.value), Math.max(60, end - begun)), end];
  }

  draw() {
    if (this.lanes.length === 0) return;
    // Not by the event alone: a browser that was asked before it came sends none.
    if (this.dark !== isDark()) {
      this.dark = isDark();
      for (const l of this.lanes) for (const c of l.charts) c.forget();
    }
    const [from, to] = this.view();
    for (const l of this.lanes) for (const c of l.charts) if (c.visible) c.measure(from, to);
    for (const l of this.lanes) l.draw(from, to);
    const since = this.api ? "" : ", since this page was opened";
    const zoom = this.zoomed ? `Zoomed to ${clock(from)} – ${clock(to)}` : "Each second";
    put(at("live-state"), this.trouble || (this.paused ? "Paused." : `${zoom}${since}. Times of ${zone}.`));
    at("live-state").classList.toggle("error", Boolean(this.trouble));
    at("zoom-reset").disabled = !this.zoomed;
    // Read aloud only when another alert fires, not with each new figure.
    const alarms = this.lanes.map((l) => l.alarm && `${l.target}: ${l.alarm}`).filter(Boolean).join("; ");
    const silent = this.lanes.filter((l) => l.since).map((l) => l.target).join(", ");
    put(at("live-said"), alarms ? `Alerts firing. ${alarms}` : silent ? `Nothing is known of ${silent}.` : this.api ? "No alert fires." : "");
  }

  // soon draws once, however many ask for it.
  soon() {
    if (this.coming) return;
    this.coming = true;
    requestAnimationFrame(() => {
      this.coming = false;
      this.draw();
    });
  }

  // drag zooms to what was dragged across. The other charts follow the mouse by
  // themselves and tell of the same drag, in the same breath.
  drag(a, b) {
    if (this.dragged) return;
    this.dragged = true;
    setTimeout(() => (this.dragged = false));
    this.zoom(a, b);
  }

  zoom(a, b) {
    const end = this.lanes[0].alerts.end;
    const wide = Math.min(Math.max(b - a, 5), SPAN);
    const from = Math.min(Math.max(a, end - SPAN), end - wide);
    this.zoomed = [from, from + wide];
    this.draw();
  }

  // by zooms by a factor about the middle, or goes by a share of the view.
  by(factor, share) {
    const [from, to] = this.view();
    const mid = (from + to) / 2 + share * (to - from);
    const half = ((to - from) / 2) * factor;
    this.zoom(mid - half, mid + half);
  }

  reset() {
    this.zoomed = null;
    this.draw();
  }

  tell(targets) {
    this.status = targets;
    for (const l of this.lanes) l.tell(targets.find((t) => t.target.name === l.target));
  }
}

// status keeps the state of the servers in the page below, and says when the list
// itself is no longer right.
const explains = new Map();

async function status(page) {
  try {
    const said = await askJSON("/status.json?lines=0");
    const targets = said.targets ?? [];
    page?.tell(targets);
    own(said);
    for (const t of targets) {
      const section = at(t.target.name);
      const mark = section?.querySelector("h2 span");
      if (!mark) continue;
      put(mark, t.up ? "up" : "down");
      mark.className = t.up ? "up" : "down";
      // The table says what was so when the page was made; what follows it is live.
      section.querySelector(".still").hidden = true;
      findings(section.querySelector(".findings"), t.findings ?? []);
      for (const s of t.sources ?? []) {
        const key = [t.target.name, s.name, s.file].join("\0");
        if (!explains.has(key)) explains.set(key, new Explain(section.querySelector(".explain"), t.target.name, s));
        explains.get(key).tell(s);
      }
    }
    const names = targets.map((t) => t.target.name).sort().join();
    const shown = [...choose.options].map((o) => o.value).sort().join();
    // Another process may have other ports, pools and logs.
    const anew = targets.some((t) => t.up && at(t.target.name)?.dataset.pid !== String(t.target.process.pid));
    at("live-changed").hidden = names === shown && !anew;
  } catch {
    // tick says that the sidecar does not answer.
  }
}

// own is what the sidecar says of itself. The page was made at some moment of its
// start, and what it said then is not so for ever.
function own(said) {
  put(at("up-for"), lasting(Math.max(0, now() - Date.parse(said.started) / 1000)));
  at("is-ready").hidden = !said.ready;
  at("not-ready").hidden = said.ready;
  const problems = said.problems ?? [];
  const key = JSON.stringify(problems);
  if (own.key === key) return;
  own.key = key;
  at("problems").replaceChildren(...problems.map((p) => make("p", "error", p)));
}

// findings are the settings that will hurt, as last judged.
function findings(place, list) {
  const key = JSON.stringify(list);
  if (place.dataset.key === key) return;
  place.dataset.key = key;
  place.hidden = list.length === 0;
  place.querySelector("ul").replaceChildren(
    ...list.map((f) => {
      const li = make("li", "", `${f.detail} `);
      li.append(make("span", "dim", `(${f.id})`));
      return li;
    }),
  );
}

// keys are for whoever has no mouse, or does not want it.
function keys(page, e) {
  const chart = page.lanes.flatMap((l) => l.charts).find((c) => c.plotAt === e.target);
  if (!chart || e.ctrlKey || e.metaKey || e.altKey) return;
  const do_ = {
    ArrowLeft: () => (e.shiftKey ? page.by(1, -0.25) : chart.step(-1)),
    ArrowRight: () => (e.shiftKey ? page.by(1, 0.25) : chart.step(1)),
    "+": () => page.by(0.5, 0),
    "-": () => page.by(2, 0),
    Escape: () => (chart.leave(), page.reset()),
  }[e.key];
  if (!do_) return;
  e.preventDefault();
  do_();
  // Whoever does not see the chart hears where the key has led. The label has the
  // newest values only, and changes each second: that is not read aloud.
  const [from, to] = page.view();
  const moved = e.key.startsWith("Arrow") && !e.shiftKey;
  put(at("live-told"), moved ? chart.tell() : `${clock(from)} to ${clock(to)}`);
}

async function start() {
  for (const section of document.querySelectorAll("section.target")) choose.add(new Option(section.id));
  if (choose.options.length === 0) return;
  live.hidden = false;
  const spec = await askJSON("/static/live/charts.json");
  const page = new Page(spec, "engine" in live.dataset ? new API() : null);

  const known = (name) => [...choose.options].some((o) => o.value === name);
  const others = (chosen) => {
    other.replaceChildren(new Option("nothing", ""), ...[...choose.options].filter((o) => o.value !== choose.value).map((o) => new Option(o.value)));
    other.value = [...other.options].some((o) => o.value === chosen) ? chosen : "";
    other.parentElement.hidden = choose.options.length < 2;
  };
  const address = () => {
    const asked = new URLSearchParams(location.hash.slice(1));
    if (known(asked.get("target"))) choose.value = asked.get("target");
    others(asked.get("with"));
  };
  address();
  const show = () => {
    const of = new URLSearchParams({ target: choose.value, ...(other.value && { with: other.value }) });
    history.replaceState(null, "", "#" + of);
    return page.show(choose.value, ...(other.value ? [other.value] : []));
  };
  choose.addEventListener("change", () => (others(other.value), show()));
  other.addEventListener("change", show);
  addEventListener("hashchange", () => (address(), show()));
  span.addEventListener("change", () => page.reset());
  pause.addEventListener("click", () => {
    page.paused = !page.paused;
    pause.setAttribute("aria-pressed", String(page.paused));
    page.draw();
    page.tick();
  });
  at("zoom-in").addEventListener("click", () => page.by(0.5, 0));
  at("zoom-out").addEventListener("click", () => page.by(2, 0));
  at("zoom-earlier").addEventListener("click", () => page.by(1, -0.5));
  at("zoom-later").addEventListener("click", () => page.by(1, 0.5));
  at("zoom-reset").addEventListener("click", () => page.reset());
  places.charts.addEventListener("keydown", (e) => keys(page, e));
  // The cursor that the keys have left goes with the focus, or the legends would
  // tell of that second for ever.
  places.charts.addEventListener("focusout", (e) => {
    if (!e.relatedTarget?.closest?.(".plot")) for (const c of page.lanes.flatMap((l) => l.charts)) if (c.plotAt === e.target) c.leave();
  });
  places.charts.addEventListener("dblclick", () => page.reset());
  document.addEventListener("visibilitychange", () => page.tick());
  onTheme(() => page.draw());
  await Promise.all([status(page), page.show(...[choose.value, other.value].filter(Boolean))]);
  setInterval(() => page.tick(), 1000);
  setInterval(() => document.hidden || status(page), 5000);
}

start().catch((e) => {
  live.hidden = false;
  put(at("live-state"), `The charts can't be drawn: ${e.message}`);
});

// One source looked at closely: its last lines and what was made of them, the
// lines that were refused and why, the account of its bytes, and the settings in
// force. Everything of a log is text here and never markup.
import { askJSON } from "./series.js";
import { format, lasting, make, put } from "./words.js";

const EVERY = 2000; // ms

export class Explain {
  constructor(place, target, source) {
    Object.assign(this, { target, source });
    this.root = make("details", "source");
    this.root.dataset.source = source.name;
    const summary = make("summary");
    this.state = make("span", "dim");
    summary.append(make("b", "", source.name), " ", ...(source.file ? [make("code", "", source.file), " "] : []), this.state);
    this.inside = make("div");
    this.root.append(summary, this.inside);
    this.root.addEventListener("toggle", () => this.look());
    place.append(this.root);
  }

  // tell shows the source's state in its closed line.
  tell(source) {
    const l = source.ledger;
    const words = [];
    if (source.error) words.push(source.error);
    for (const b of source.blind ?? []) words.push(b.detail);
    if (l) words.push(`${format(l.read, "bytes")} read`, l.lag ? `${format(l.lag, "bytes")} behind` : "all read");
    if (l?.lost) words.push(`${format(l.lost, "bytes")} lost`);
    if (l?.skipped) words.push(`${format(l.skipped, "bytes")} skipped`);
    put(this.state, words.join(" · ") || "seen");
    this.state.className = source.error ? "error" : source.blind?.length || l?.lost ? "blind" : "dim";
  }

  async look() {
    clearTimeout(this.timer);
    if (!this.root.open) return;
    if (!document.hidden) {
      try {
        const q = new URLSearchParams({ target: this.target, source: this.source.name, file: this.source.file ?? "" });
        const said = await askJSON("/explain.json?" + q);
        if (said.sources[0]) this.draw(said.sources[0], said.lines);
      } catch (e) {
        this.inside.replaceChildren(make("p", "error", `The sidecar does not answer (${e.message}).`));
        this.key = "";
      }
    }
    this.timer = setTimeout(() => this.look(), EVERY);
  }

  draw(s, lines) {
    const key = JSON.stringify(s);
    if (key === this.key || this.inside.contains(getSelection().anchorNode) && !getSelection().isCollapsed) return; // somebody copies
    this.key = key;
    const at = this.inside.querySelector(".scroll")?.scrollTop;
    const parts = [];
    if (s.path) {
      const p = make("p", "dim", "Reads ");
      p.append(make("code", "", s.path));
      parts.push(p);
    }
    if (s.detail) parts.push(make("p", "", s.detail));
    for (const b of s.blind ?? []) if (b.needs) parts.push(make("p", "blind", `Needed: ${b.needs}.`));
    if (s.ledger) parts.push(this.ledger(s.ledger));
    if (!lines) parts.push(make("p", "dim", "Lines of logs are shown only on the sidecar's own machine, or to users of its web config."));
    else if (s.ledger) parts.push(...this.lines(s), ...this.refused(s));
    if (s.settings) {
      const d = make("pre", "settings", s.settings);
      d.tabIndex = 0;
      parts.push(make("h4", "", "Settings in force"), d);
    }
    this.inside.replaceChildren(...parts);
    const scroll = this.inside.querySelector(".scroll");
    if (scroll && at) scroll.scrollTop = at;
  }

  ledger(l) {
    const dl = make("dl", "ledger");
    const one = (name, value, what, bad) => {
      const box = make("div", bad ? "bad" : "");
      box.append(make("dt", "", name), make("dd", "", value), make("dd", "dim", what));
      dl.append(box);
    };
    one("Written", format(l.written, "bytes"), "that the kernel showed");
    one("Read", format(l.read, "bytes"), "handed to the parser");
    one("Behind", format(l.lag, "bytes"), l.lag_seconds ? `for ${lasting(l.lag_seconds)}` : "not read yet", l.lag > 1 << 20);
    one("Skipped", format(l.skipped, "bytes"), "left out on purpose", l.skipped > 0);
    one("Lost", format(l.lost, "bytes"), "gone before they could be read", l.lost > 0);
    one("Gaps", String(l.gaps), "places where lines may be missing", l.gaps > 0);
    return dl;
  }

  lines(s) {
    const out = [make("h4", "", "The last lines, and what was made of them")];
    if (!s.entries?.length) return [...out, make("p", "dim", "No line since the sidecar looks at this log.")];
    out.push(make("p", "dim", "The newest is on top. Of a busy log a few lines of each second are kept; what looks like a secret is masked."));
    const body = make("tbody");
    for (const e of s.entries.toReversed()) {
      const tr = make("tr", e.refused ? "refused" : "");
      const line = make("td");
      line.append(make("code", "", e.line));
      if (e.again) line.append(make("div", "dim", `and ${e.again} more of this kind at once`));
      const made = make("td");
      if (e.refused) made.append(make("span", "error", `refused: ${e.refused}`));
      for (const f of e.made ?? []) {
        const fact = make("span", "fact");
        fact.append(make("span", "dim", f.name), " ", make("b", "", f.value));
        made.append(fact, " ");
      }
      tr.append(line, made);
      body.append(tr);
    }
    out.push(this.table(["Line", "Made of it"], body, "Last lines"));
    return out;
  }

  refused(s) {
    const what = s.name === "applog" ? "Lines that belong to no record" : "Lines that were refused";
    const out = [make("h4", "", what)];
    if (!s.refused?.length) return [...out, make("p", "dim", "None.")];
    const body = make("tbody");
    for (const r of s.refused.toReversed()) {
      const tr = make("tr");
      const line = make("td");
      line.append(make("code", "", r.line));
      tr.append(line, make("td", "error", r.reason));
      body.append(tr);
    }
    out.push(this.table(["Line", "Reason"], body, what));
    return out;
  }

  table(head, body, name) {
    const box = make("div", "scroll lines");
    Object.assign(box, { tabIndex: 0, role: "region" });
    box.setAttribute("aria-label", `${name}: ${this.target}, ${this.source.name} ${this.source.path ?? ""}`);
    const table = make("table");
    const tr = make("tr");
    for (const h of head) tr.append(Object.assign(make("th", "", h), { scope: "col" }));
    const top = make("thead");
    top.append(tr);
    table.append(top, body);
    box.append(table);
    return box;
  }
}

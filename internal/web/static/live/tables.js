// The tables under the charts: what the logs say most often just now.
import { askJSON, fill } from "./series.js";
import { format, make, put } from "./words.js";

// dotted is a cell whose name may go on in the next line behind a dot: the name of a
// class is read by its parts.
function dotted(name) {
  const td = make("td");
  name.split(/(?<=[.])(?=\w)/).forEach((part, i) => td.append(...(i ? [make("wbr")] : []), part));
  return td;
}

// Tables are those of one server. Where there is no engine only the patterns are
// there, which the sidecar counts by itself.
export class Tables {
  constructor(place, specs, target, api, several) {
    Object.assign(this, { specs: api ? specs : [], target, api, several, shown: new Map() });
    this.root = make("div", "tables");
    for (const spec of this.specs) this.begin(spec.id, spec.title);
    this.begin("patterns", "Top patterns of the server's log");
    place.append(this.root);
  }

  begin(id, title) {
    const box = make("div");
    const table = make("table");
    table.id = this.several ? "" : "table-" + id;
    table.append(make("caption", "", this.several ? `${title}: ${this.target}` : title));
    const body = make("tbody");
    const note = make("p", "dim");
    const how = make("pre");
    how.hidden = true;
    table.append(body);
    box.append(table, note, how);
    this.root.append(box);
    this.shown.set(id, { body, note, how, key: "" });
  }

  async update() {
    const work = this.specs.map(async (spec) => {
      const found = await this.api.instant(fill(spec.expr, this.target));
      const rows = found.map((r) => [r.metric[spec.label] ?? "", Number(r.value[1])]).sort((a, b) => b[1] - a[1]);
      this.fill(spec.id, rows.map(([n, v]) => [n, format(v, spec.unit)]), spec.none, spec.how);
    });
    work.push(this.patterns());
    const failed = (await Promise.allSettled(work)).find((r) => r.status === "rejected");
    if (failed) throw failed.reason;
  }

  async patterns() {
    const said = await askJSON("/explain.json?source=applog&" + new URLSearchParams({ target: this.target }));
    const all = said.sources.flatMap((s) => s.patterns ?? []).sort((a, b) => b.records - a.records);
    const rows = all.slice(0, 5).map((p) => [`${p.level ?? ""} ${p.text}`.trim(), `${format(p.records, "none")}${p.new ? " new" : ""}`]);
    this.fill("patterns", rows, said.lines ? "no record yet" : "Text of logs is shown only on the sidecar's own machine, or to users of its web config.");
  }

  fill(id, rows, none, how) {
    const t = this.shown.get(id);
    const key = JSON.stringify(rows);
    put(t.note, rows.length ? "" : none);
    put(t.how, how ?? "");
    t.how.hidden = rows.length > 0 || !how;
    if (t.key === key) return;
    t.key = key;
    t.body.replaceChildren(
      ...rows.map(([name, value]) => {
        const tr = make("tr");
        tr.append(dotted(name), make("td", "num", value)); // text, whatever a log made of it
        return tr;
      }),
    );
  }
}

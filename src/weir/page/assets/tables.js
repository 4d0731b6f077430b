// Tiles, hosts, outputs, rows that were rejected, the store, and what is known of one stage.

function tile(name, figure, ...small) {
  return h("div", { class: "tile" }, h("dt", null, name), h("dd", null, h("div", { class: "figure" }, figure), small.filter(Boolean).map((text) => h("div", { class: "small" }, text))));
}

function reachedTime(ticks, type) {
  const text = eventTime(ticks, type);
  return type === "TIMESTAMP" && text.length === 23 ? [text.slice(11, 19), text.slice(0, 10)] : [text, ""];
}

function tiles(view) {
  const status = view.status;
  if (!status) return [];
  const over = isOver(view);
  const sources = status.vertices.filter((v) => v.kind === "source");
  const samples = view.history.samples;
  const rate = sum(sources.map((v) => v.events_per_second));
  const busy = samples.filter((p) => p[2] > 0);
  const mean = busy.length ? sum(busy.map((p) => p[2] * p[1])) / sum(busy.map((p) => p[1])) : 0;
  const type = (view.stages.find((stage) => stage.source) || {}).time;
  const lag = Math.max(-1, ...status.vertices.map((v) => (v.lag === null ? -1 : v.lag)));
  const turned = sum(sources.map((v) => v.late + v.bad));
  const rows = view.delays.map((d, n) => [d, n]).filter(([d]) => d.p50 !== null);
  const worst = rows.length ? rows.reduce((a, b) => (b[0].p99 > a[0].p99 ? b : a)) : null;
  const size = sum(view.kept.map((k) => k.bytes));
  return [
    tile("Events read", short(status.events), turned ? `${count(turned)} rejected` : "none rejected"),
    over ? tile("Events a second", mean ? short(mean) : "–", "while it read") : tile("Events a second", short(rate), mean ? `${short(mean)} on average` : ""),
    tile("Event time reached", ...reachedTime(status.reached, type), !over && lag >= 0 ? `the last vertex is ${eventSpan(lag, view)} behind` : ""),
    tile("Delay, p50", worst ? seconds(worst[0].p50) : "–", worst ? `p99 ${seconds(worst[0].p99)}${view.outputs[worst[1]] ? `, ${view.outputs[worst[1]].title}` : ""}` : "not measured"),
    tile("Recoveries", count(status.recoveries), plural(view.story.episodes.length, "loss", "losses") + " in the story"),
    tile("Hosts", over ? "–" : `${status.hosts.length} of ${status.hosts_wanted}`, `epoch ${status.epoch}`),
    tile("Store", bytes(size), plural(sum(view.kept.map((k) => k.objects)), "object")),
  ];
}

function table(heads, rows, key) {
  return h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": key || "table" }, h("table", null,
    h("thead", null, h("tr", null, heads.map(([name, kind]) => h("th", { class: kind, scope: "col" }, name)))),
    h("tbody", null, rows)));
}

function panel(view, node, close) {
  const isOutput = node[0] === "o", number = +node.slice(1);
  const vertices = verticesOf(view, node);
  const parts = new Map(view.vertices.map((v) => [v.id, v.partition]));
  const over = isOver(view);
  const facts = [];
  let title, operators = null;
  if (isOutput) {
    const output = view.outputs[number], delay = view.delays[number];
    title = `Output ${output.title}`;
    facts.push(["path", output.path]);
    if (delay && delay.p50 !== null) facts.push(["delay from sources", `p50 ${seconds(delay.p50)}, p99 ${seconds(delay.p99)}`]);
  } else {
    const stage = view.stages[number];
    title = `Stage ${stage.number}: ${stageName(stage)}`;
    operators = h("ol", null, stage.operators.map((o) => h("li", null, h("b", null, o.name), ` ${o.detail}`, o.hold ? h("span", { class: "freshness" }, ` holds rows: ${o.hold}`) : null)));
    if (stage.strategy) facts.push(["recovers by", stage.strategy]);
    if (stage.why_single) facts.push(["one vertex, because", stage.why_single]);
    for (const link of stage.links) facts.push([`reads stage ${link.stage}`, link.channel === "hash" ? `split by the hash of ${link.keys.join(", ")}` : link.channel === "all" ? "all rows in one vertex" : "vertex by vertex"]);
  }
  const ids = new Set(vertices.map((v) => v.id));
  const waits = view.waits.filter((w) => ids.has(w.vertex));
  const heads = [["vertex", "text"], ["state", "text"], ["host", "text"], ["events/s"], ["lag"], ["read"], ["written"], ["state rows"], ["queue"], ["checkpoints"], ["recoveries"]];
  const rows = vertices.map((v) => h("tr", null,
    h("td", { class: "text", title: parts.get(v.id) || "" }, v.id, parts.get(v.id) ? h("span", { class: "freshness" }, ` ${parts.get(v.id)}`) : null),
    h("td", { class: "text" }, v.status), h("td", { class: "text" }, v.host || ""),
    h("td", null, over ? "" : short(v.events_per_second)), h("td", null, v.lag === null ? "" : eventSpan(v.lag, view)),
    h("td", null, count(v.kind === "inner" ? v.events : sum(v.inputs))), h("td", null, count(sum(v.outputs))), h("td", null, count(v.state_rows)),
    h("td", null, over ? "" : bytes(v.queued_bytes)), h("td", null, count(v.snapshots)), h("td", null, count(v.recoveries))));
  return h("div", { class: "card panel", id: "panel" },
    h("div", { class: "head bar", css: { "justify-content": "space-between", margin: "0 0 .5rem" } }, h("h3", null, title), h("button", { type: "button", class: "plain", "data-focus": "close", onclick: close }, "close")),
    operators, facts.length ? h("dl", { class: "facts" }, facts.map(([name, what]) => [h("dt", null, name), h("dd", null, what)])) : null,
    waitList(waits), table(heads, rows, `vertices of ${title}`));
}

const FIRST_WAITS = 6;

function waitList(waits) {
  if (!waits.length) return null;
  const more = waits.length - FIRST_WAITS;
  return h("ul", { class: "waits" }, waits.slice(0, FIRST_WAITS).map((w) => h("li", null, h("b", null, w.vertex), w.upon ? ` waits for ${w.upon}, ${w.why}` : ` ${w.why}`)),
    more > 0 ? h("li", { class: "freshness" }, `and ${count(more)} more: choose a stage`) : null);
}

function hosts(view) {
  const status = view.status;
  if (status && status.hosts.length) {
    return h("div", { class: "cards" }, status.hosts.map((host) => {
      const runs = status.vertices.filter((v) => v.host === host.id);
      return h("div", { class: "card" }, h("h3", null, `Host ${host.id}`),
        h("div", { class: "freshness" }, `pid ${host.pid} on ${host.machine}, ${short(sum(runs.map((v) => v.events_per_second)))} rows/s`),
        h("ul", { class: "chips" }, host.vertices.map((v) => h("li", null, v))));
    }));
  }
  const lines = view.story.lines.filter((line) => !line.vertex && (line.kind === "host" || line.kind === "lost"));
  if (!lines.length) return h("p", { class: "empty" }, "No host is there.");
  return h("div", { class: "card" }, h("h3", null, "Hosts that came and went"), h("ul", { class: "story" }, lines.map((line) => h("li", null, told(line)))));
}

function rowTable(output) {
  if (output.problem) return h("p", { class: "note bad" }, output.problem);
  if (!output.rows.length) return h("p", { class: "empty" }, "No rows yet.");
  const kinds = output.columns.map(([, type]) => (/^(BIGINT|INT|DOUBLE|DECIMAL)/.test(type) ? "" : "text "));
  const heads = output.columns.map(([name], at) => [name, kinds[at]]);
  return table(heads, output.rows.map((row) => h("tr", null, row.map((value, at) => h("td", { class: `${kinds[at]}cell${value === null ? " null" : ""}`, title: value === null ? "NULL" : value }, value === null ? "NULL" : value)))), `last rows of ${output.manifest.name}`);
}

function outputCard(output) {
  const m = output.manifest;
  return h("div", { class: "card" },
    h("div", { class: "bar" }, h("h3", { css: { margin: 0 } }, m.kind === "rows" ? m.name : `${m.kind} rows of ${m.name}`), h("code", null, m.path),
      m.finished ? h("span", { class: "pill good" }, "finished") : null),
    h("p", { class: "digest" }, `${plural(m.rows, "row")} in ${plural(m.commits, "commit")}, digest `, h("code", null, m.digest)),
    rowTable(output));
}

function outputs(view) {
  const found = view.committed.filter((c) => c.manifest.kind === "rows");
  const direct = view.outputs.filter((o) => o.path === "console:" || o.path === "callback:");
  return h("div", { class: "outputs" }, found.map(outputCard),
    direct.length ? h("p", { class: "empty" }, `${direct.map((o) => `${o.title} (${o.path})`).join(", ")}: rows are handed on as they come, and not kept.`) : null,
    !found.length && !direct.length ? h("p", { class: "empty" }, "The job has no outputs.") : null);
}

function turnedAway(view) {
  const sources = view.stages.filter((stage) => stage.source);
  const rows = sources.map((stage) => {
    const vertices = verticesOf(view, `s${stage.number}`);
    return h("tr", null, h("td", { class: "text" }, stage.source), h("td", null, count(sum(vertices.map((v) => v.late)))), h("td", null, count(sum(vertices.map((v) => v.bad)))), h("td", null, count(sum(vertices.map((v) => v.events)))));
  });
  const samples = view.committed.filter((c) => c.manifest.kind !== "rows");
  return [
    sources.length ? h("div", { class: "card" }, table([["input", "text"], ["late"], ["bad"], ["admitted"]], rows, "rows that were rejected")) : h("p", { class: "empty" }, "The plan is not kept in this store, so nothing is known of its inputs."),
    samples.length ? h("div", { class: "outputs", css: { "margin-top": ".9rem" } }, samples.map(outputCard)) : h("p", { class: "empty", css: { "margin-top": ".6rem" } }, "Rows that are rejected are counted, and not kept. OUTPUT LATE OF … TO '…' or OUTPUT BAD OF … TO '…' keeps them, and they are shown here."),
  ];
}

const FIRST_KEPT = 8;

function storeTable(view, state, redraw) {
  const most = Math.max(1, ...view.kept.map((k) => k.bytes));
  const sorted = [...view.kept].sort((a, b) => b.bytes - a.bytes);
  const left = state.allKept ? 0 : sorted.length - FIRST_KEPT;
  const rows = sorted.slice(0, left > 0 ? FIRST_KEPT : undefined).map((k) => h("tr", null,
    h("td", { class: "text" }, k.of ? `${k.kind} of ${k.of}` : k.kind), h("td", null, count(k.objects)), h("td", null, bytes(k.bytes)),
    h("td", { class: "text" }, h("span", { class: "share", css: { width: `${(k.bytes / most) * 7}rem` } })), h("td", { class: "why" }, k.why)));
  return h("div", { class: "card" }, table([["kept", "text"], ["objects"], ["bytes"], ["", "text"], ["why", "text"]], rows, "what the store holds"),
    left > 0 ? h("button", { type: "button", class: "plain", "data-focus": "kept", onclick: () => { state.allKept = true; redraw(); } }, `${count(left)} more`) : null);
}

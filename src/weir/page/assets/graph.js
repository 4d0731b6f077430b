// The plan as a graph: stages and outputs as cards in layers, what flows between them as edges.
// The layout is made anew only when the plan or the width changes; figures change in place.

const CARD = 224, LEAST_CARD = 170, GAP_ALONG = 104, GAP_ACROSS = 22;

function planEdges(view) {
  const edges = [];
  for (const stage of view.stages) {
    for (const link of stage.links) edges.push({ from: `s${link.stage}`, to: `s${stage.number}`, link });
  }
  view.outputs.forEach((output, number) => {
    for (const stage of output.stages) edges.push({ from: `s${stage}`, to: `o${number}`, kind: output.kind });
  });
  const known = new Map();
  return edges.filter((e) => !known.has(e.from + e.to) && known.set(e.from + e.to, e));
}

function layersOf(view, edges) {
  // A node stands one layer after the last of those that it reads; sinks of one stage stand together.
  const depth = new Map();
  for (const stage of view.stages) {
    const before = edges.filter((e) => e.to === `s${stage.number}`).map((e) => depth.get(e.from) ?? 0);
    depth.set(`s${stage.number}`, before.length ? Math.max(...before) + 1 : 0);
  }
  view.outputs.forEach((_, number) => {
    const before = edges.filter((e) => e.to === `o${number}`).map((e) => depth.get(e.from) ?? 0);
    depth.set(`o${number}`, before.length ? Math.max(...before) + 1 : 0);
  });
  const layers = [];
  for (const [node, layer] of depth) (layers[layer] ||= []).push(node);
  const place = new Map();
  for (const layer of layers) {
    // In the order of what they read, so that few edges cross.
    const weight = (node) => {
      const read = edges.filter((e) => e.to === node).map((e) => place.get(e.from) ?? 0);
      return read.length ? sum(read) / read.length : Infinity;
    };
    const weights = new Map(layer.map((node) => [node, weight(node)]));
    layer.sort((a, b) => (weights.get(a) - weights.get(b)) || 0);
    layer.forEach((node, index) => place.set(node, index - (layer.length - 1) / 2));
  }
  return layers;
}

class Graph {
  constructor(root, choose) {
    this.root = root;
    this.choose = choose;
    this.signature = "";
  }

  show(view, chosen) {
    if (!view.stages.length) {
      this.signature = "";
      this.root.replaceChildren(h("p", { class: "empty" }, "The plan is not known yet."));
      return;
    }
    const width = this.root.clientWidth;
    const signature = JSON.stringify([view.stages, view.outputs, width]);
    if (signature !== this.signature) {
      this.signature = signature;
      this.build(view, width);
    }
    this.update(view, chosen);
  }

  build(view, width) {
    this.edges = planEdges(view);
    this.layers = layersOf(view, this.edges);
    this.cards = new Map();
    this.plane = h("div", { class: "plane" });
    this.lines = s("svg", { "aria-hidden": "true" });
    this.plane.append(this.lines);
    const most = Math.max(1, ...this.layers.map((l) => l.length));
    const upright = width < 720;
    const room = Math.floor((width - GAP_ACROSS * (most - 1)) / most);
    const depth = this.layers.length;
    const fits = Math.floor((width - 4 - GAP_ALONG * (depth - 1)) / depth);
    this.size = upright ? Math.max(150, Math.min(CARD, room)) : Math.max(LEAST_CARD, Math.min(CARD, fits));
    for (const node of this.layers.flat()) {
      const card = node[0] === "s" ? this.stageCard(view.stages[+node.slice(1)]) : this.outputCard(view.outputs[+node.slice(1)]);
      card.dataset.node = node;
      card.style.width = `${this.size}px`;
      card.addEventListener("click", () => this.choose(node));
      card.addEventListener("keydown", (event) => this.move(event, node));
      this.cards.set(node, card);
      this.plane.append(card);
    }
    for (const edge of this.edges) {
      edge.line = s("path", { class: "edge" });
      edge.tag = h("span", { class: "tag" });
      this.lines.append(edge.line);
      this.plane.append(edge.tag);
    }
    this.upright = upright;
    this.root.replaceChildren(this.plane);
  }

  stageCard(stage) {
    const kind = stage.source ? "source" : `stage ${stage.number}`;
    const times = stage.vertices > 1 ? `× ${stage.vertices}` : "";
    const operators = stage.operators.slice(stage.source ? 1 : 0);
    const shown = operators.slice(0, 3).map((o) => h("li", { title: `${o.name} ${o.detail}` }, h("b", null, o.name), ` ${o.detail}`));
    if (operators.length > 3) shown.push(h("li", null, `and ${operators.length - 3} more`));
    return h("button", { type: "button", class: `node ${stage.source ? "good" : "calm"}` },
      h("span", { class: "kind" }, h("span", null, stage.source ? `${kind}, stage ${stage.number}` : kind), h("span", null, times)),
      h("span", { class: "name" }, stageName(stage)),
      h("ul", { class: "ops" }, shown),
      h("span", { class: "figures" }), h("span", { class: "badge" }));
  }

  outputCard(output) {
    return h("button", { type: "button", class: `node ${output.kind === "rows" ? "output" : "warn"}`, css: output.kind === "rows" ? { "--tone": "var(--c4)" } : {} },
      h("span", { class: "kind" }, "output"),
      h("span", { class: "name" }, output.title),
      h("ul", { class: "ops" }, h("li", { title: output.path }, output.path)),
      h("span", { class: "figures" }), h("span", { class: "badge" }));
  }

  update(view, chosen) {
    for (const [node, card] of this.cards) {
      const figures = nodeFigures(view, node);
      card.setAttribute("aria-expanded", String(node === chosen));
      card.querySelector(".figures").replaceChildren(...figures.shown.map(([what, value]) => h("span", null, h("b", null, value), ` ${what}`)));
      card.querySelector(".badge").textContent = clean(figures.badge);
    }
    for (const edge of this.edges) this.updateEdge(view, edge);
    this.arrange();
  }

  updateEdge(view, edge) {
    const flow = flowOf(view, edge);
    const link = edge.link;
    const how = !link ? "" : link.channel === "hash" ? `by ${link.keys.join(", ")}` : link.channel === "all" ? "all to one" : "";
    edge.tag.title = clean(how);
    edge.tag.replaceChildren();
    edge.line.setAttribute("class", "edge");
    if (!flow) return;
    const over = isOver(view);
    const rate = flow.rate;
    const main = !over && rate !== null ? `${short(rate)}/s` : `${short(flow.read)} rows`;
    const unread = flow.written - flow.read;
    edge.tag.append(h("b", null, main));
    if (unread > 0) edge.tag.append(h("span", null, `${short(unread)} unread`));
    if (flow.held) edge.tag.append(h("span", { class: "warned" }, "held up"));
    else if (flow.behind >= 1e6 && flow.behind < END) edge.tag.append(h("span", { class: "warned" }, `${eventSpan(flow.behind, view)} behind`));
    const speed = over ? 0 : rate || 0;
    edge.line.setAttribute("stroke-width", String(1.3 + Math.min(3.2, Math.log10(1 + (over ? flow.read / 1000 : speed)) * 0.8)));
    const names = ["edge"];
    if (speed > 0) names.push("flows");
    if (flow.held) names.push("held");
    else if (flow.behind >= 1e6 && flow.behind < END) names.push("behind");
    edge.line.setAttribute("class", names.join(" "));
  }

  arrange() {
    const sizes = new Map([...this.cards].map(([node, card]) => [node, card.offsetHeight]));
    const boxes = new Map();
    const thick = (layer) => Math.max(...layer.map((node) => sizes.get(node)));
    let width, height;
    if (this.upright) {
      const span = (layer) => layer.length * this.size + (layer.length - 1) * GAP_ACROSS;
      width = Math.max(this.root.clientWidth, ...this.layers.map(span));
      let y = 4;
      for (const layer of this.layers) {
        let x = (width - span(layer)) / 2;
        for (const node of layer) {
          boxes.set(node, { x, y, w: this.size, h: sizes.get(node) });
          x += this.size + GAP_ACROSS;
        }
        y += thick(layer) + 62;
      }
      height = y - 54;
    } else {
      const span = (layer) => sum(layer.map((n) => sizes.get(n))) + (layer.length - 1) * GAP_ACROSS;
      height = Math.max(...this.layers.map(span)) + 8;
      this.layers.forEach((layer, index) => {
        let y = (height - span(layer)) / 2;
        for (const node of layer) {
          boxes.set(node, { x: index * (this.size + GAP_ALONG) + 2, y, w: this.size, h: sizes.get(node) });
          y += sizes.get(node) + GAP_ACROSS;
        }
      });
      width = this.layers.length * (this.size + GAP_ALONG) - GAP_ALONG + 4;
    }
    Object.assign(this.plane.style, { width: `${width}px`, height: `${height}px` });
    this.lines.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.lines.setAttribute("width", width);
    this.lines.setAttribute("height", height);
    for (const [node, box] of boxes) Object.assign(this.cards.get(node).style, { left: `${box.x}px`, top: `${box.y}px` });
    const leaving = new Map(), coming = new Map();
    for (const edge of this.edges) {
      (leaving.get(edge.from) || leaving.set(edge.from, []).get(edge.from)).push(edge);
      (coming.get(edge.to) || coming.set(edge.to, []).get(edge.to)).push(edge);
    }
    for (const edge of this.edges) this.draw(edge, boxes, leaving.get(edge.from), coming.get(edge.to));
  }

  draw(edge, boxes, leaving, coming) {
    const a = boxes.get(edge.from), b = boxes.get(edge.to);
    // Ends are spread along the card's side, in the order of where they lead.
    const across = this.upright ? (box) => box.x + box.w / 2 : (box) => box.y + box.h / 2;
    const rank = (edges, end) => {
      const sorted = [...edges].sort((p, q) => across(boxes.get(p[end])) - across(boxes.get(q[end])));
      return (sorted.indexOf(edge) + 1) / (edges.length + 1);
    };
    const out = rank(leaving, "to"), into = rank(coming, "from");
    let x1, y1, x2, y2, path;
    if (this.upright) {
      [x1, y1, x2, y2] = [a.x + a.w * out, a.y + a.h, b.x + b.w * into, b.y];
      const bend = Math.max(24, (y2 - y1) / 2);
      path = `M${x1},${y1} C${x1},${y1 + bend} ${x2},${y2 - bend} ${x2},${y2}`;
    } else {
      [x1, y1, x2, y2] = [a.x + a.w, a.y + a.h * out, b.x, b.y + b.h * into];
      const bend = Math.max(40, (x2 - x1) / 2);
      path = `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`;
    }
    edge.line.setAttribute("d", path);
    // Beside the reader: an edge over several layers has its figures in the last gap.
    const at = this.upright ? { x: (x1 + x2) / 2, y: (Math.max(y1, y2 - 62) + y2) / 2 } : { x: x2 - GAP_ALONG / 2, y: x2 - x1 > 2 * GAP_ALONG ? y2 : (y1 + y2) / 2 };
    Object.assign(edge.tag.style, { left: `${at.x}px`, top: `${at.y}px` });
  }

  move(event, node) {
    const along = { ArrowRight: 1, ArrowLeft: -1 }, across = { ArrowDown: 1, ArrowUp: -1 };
    const [forth, beside] = this.upright ? [{ ArrowDown: 1, ArrowUp: -1 }, { ArrowRight: 1, ArrowLeft: -1 }] : [along, across];
    const layer = this.layers.findIndex((l) => l.includes(node));
    const index = this.layers[layer].indexOf(node);
    let next;
    if (event.key in forth) {
      const other = this.layers[layer + forth[event.key]];
      next = other && other[Math.min(index, other.length - 1)];
    } else if (event.key in beside) next = this.layers[layer][index + beside[event.key]];
    else return;
    event.preventDefault();
    if (next) this.cards.get(next).focus();
  }
}

function stageName(stage) {
  if (stage.name) return stage.name;
  if (stage.source) return stage.source;
  const telling = stage.operators.filter((o) => !["Project", "Filter", "Branch", "Recovery"].includes(o.name));
  return (telling[0] || stage.operators[0]).name;
}

function isOver(view) {
  return !view.status || ["finished", "checking", "stopped", "failed", "ended"].includes(view.status.state);
}

function flowOf(view, edge) {
  const toOutput = edge.to[0] === "o";
  return view.flows.find((f) => f.source === +edge.from.slice(1) && f.target === +edge.to.slice(1) && f.to_output === toOutput);
}

function verticesOf(view, node) {
  const isOutput = node[0] === "o";
  const ids = new Set(view.vertices.filter((v) => v.stage === +node.slice(1) && (v.kind === "sink") === isOutput).map((v) => v.id));
  return view.status ? view.status.vertices.filter((v) => ids.has(v.id)) : [];
}

function nodeFigures(view, node) {
  const vertices = verticesOf(view, node);
  const shown = [];
  const over = isOver(view);
  const rate = sum(vertices.map((v) => v.events_per_second));
  if (node[0] === "o") {
    const output = committedOf(view, +node.slice(1));
    if (output) shown.push(["rows", short(output.manifest.rows)]);
    else shown.push(["rows", short(sum(vertices.map((v) => sum(v.inputs))))]);
    const delay = view.delays[+node.slice(1)];
    if (delay && delay.p50 !== null) shown.push(["p50", seconds(delay.p50)], ["p99", seconds(delay.p99)]);
  } else {
    shown.push(over ? ["rows", short(sum(vertices.map((v) => v.events)))] : ["rows/s", short(rate)]);
    const state = sum(vertices.map((v) => v.state_rows));
    if (state) shown.push(["in state", short(state)]);
    const lag = Math.max(-1, ...vertices.map((v) => (v.lag === null ? -1 : v.lag)));
    if (!over && lag >= 0) shown.push(["lag", eventSpan(lag, view)]);
    const turned = sum(vertices.map((v) => v.late + v.bad));
    if (turned) shown.push(["rejected", short(turned)]);
  }
  const recoveries = sum(vertices.map((v) => v.recoveries));
  if (recoveries) shown.push([recoveries === 1 ? "recovery" : "recoveries", count(recoveries)]);
  const ids = new Set(vertices.map((v) => v.id));
  const waits = view.waits.filter((w) => ids.has(w.vertex));
  const badge = waits.length ? `waits for ${waits[0].upon || "…"}: ${waits[0].why}`.replace("for …: ", "") : "";
  return { shown, badge };
}

function committedOf(view, number) {
  const output = view.outputs[number];
  return view.committed.find((c) => c.manifest.path === output.path && c.manifest.kind === output.kind && output.title.endsWith(c.manifest.name));
}

// Line charts over time, with a cross that follows the pointer or the arrow keys.

const HIGH = 200, LEFT = 52, RIGHT = 10, TOP = 10, BOTTOM = 22;
const TWO_COLUMNS = 900, BETWEEN = 14, WITHIN = 34;

function chart({ title, series, more, marks, format, logarithmic, from, to, wide }) {
  const values = series.flatMap((line) => line.points.map((p) => p[1])).filter((v) => v !== null);
  const now = series.length === 1 && values.length ? `${format(values[values.length - 1])} last, ${format(Math.max(...values))} at most` : "";
  const head = h("div", { class: "head" }, h("h3", null, title), h("span", { class: "now" }, now));
  if (!values.length) return h("div", { class: "card chart" }, head, h("p", { class: "empty" }, "Nothing was measured yet."));
  const scale = logarithmic ? logScale(values) : linearScale(values);
  const x = (t) => LEFT + ((t - from) / Math.max(to - from, 1e-9)) * (wide - LEFT - RIGHT);
  const y = (v) => TOP + (1 - scale.at(v)) * (HIGH - TOP - BOTTOM);
  const drawn = scale.ticks.map((v) => [
    s("line", { class: "grid", x1: LEFT, x2: wide - RIGHT, y1: y(v), y2: y(v) }),
    s("text", { x: LEFT - 7, y: y(v) + 4, "text-anchor": "end" }, format(v)),
  ]);
  for (const mark of marks) {
    if (mark.time < from || mark.time > to) continue;
    drawn.push(s("line", { class: "mark", x1: x(mark.time), x2: x(mark.time), y1: TOP, y2: HIGH - BOTTOM }, s("title", null, mark.what)));
  }
  for (const line of series) drawn.push(...strokes(line, x, y, series.length === 1));
  drawn.push(
    s("text", { x: LEFT, y: HIGH - 5 }, clock(from)),
    s("text", { x: wide - RIGHT, y: HIGH - 5, "text-anchor": "end" }, clock(to)));
  const cross = s("line", { class: "cross", y1: TOP, y2: HIGH - BOTTOM, visibility: "hidden" });
  const plot = s("svg", { viewBox: `0 0 ${wide} ${HIGH}`, width: wide, height: HIGH, tabindex: 0, role: "img", "aria-label": `${title}: ${series.map((l) => summary(l, format)).join("; ")}` }, drawn, cross);
  const tip = h("div", { class: "tip", hidden: "" });
  const card = h("div", { class: "card chart" }, head, plot, tip, series.length > 1 ? legend(series, more) : null);
  follow(plot, tip, cross, series, { x, from, to, format, wide });
  return card;
}

function summary(line, format) {
  const values = line.points.map((p) => p[1]).filter((v) => v !== null);
  return values.length ? `${line.name} ${format(values[values.length - 1])} last, ${format(Math.max(...values))} at most` : `${line.name} nothing`;
}

function legend(series, more) {
  return h("ul", { class: "legend" }, series.map((line) => h("li", null, h("i", { css: { background: line.colour, opacity: line.faint ? ".45" : "1" } }), line.name)),
    more ? h("li", null, `and ${count(more)} more, which are lower`) : null);
}

function strokes(line, x, y, filled) {
  // A gap in time, or a moment without a value, breaks the line.
  const runs = [];
  let run = [], before = null;
  for (const [t, v, span] of line.points) {
    const gap = before !== null && t - before > 3 * span + 2;
    if (v === null || gap) {
      if (run.length) runs.push(run);
      run = [];
    }
    if (v !== null) run.push([x(t), y(v)]);
    before = t;
  }
  if (run.length) runs.push(run);
  return runs.flatMap((points) => {
    const path = points.map((p) => p.map((n) => n.toFixed(1)).join(",")).join(" ");
    if (points.length === 1) return [s("circle", { cx: points[0][0], cy: points[0][1], r: 2, css: { fill: line.colour } })];
    const drawn = [s("polyline", { class: "line", points: path, css: { stroke: line.colour, opacity: line.faint ? ".45" : "1" } })];
    const floor = HIGH - BOTTOM;
    if (filled) drawn.unshift(s("polygon", { class: "area", points: `${points[0][0]},${floor} ${path} ${points[points.length - 1][0]},${floor}`, css: { fill: line.colour } }));
    return drawn;
  });
}

function linearScale(values) {
  const most = Math.max(...values, 1e-9);
  const step = 10 ** Math.floor(Math.log10(most));
  const nice = [1, 2, 2.5, 5, 10].map((n) => n * step).find((n) => n >= most * 0.999) || most;
  return { at: (v) => v / nice, ticks: [0, nice / 2, nice] };
}

function logScale(values) {
  const low = Math.floor(Math.log10(Math.min(...values)) + 1e-9), top = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values)) - 1e-9));
  const ticks = [];
  for (let n = low; n <= top; n++) ticks.push(10 ** n);
  return { at: (v) => (Math.log10(Math.max(v, 10 ** low)) - low) / (top - low), ticks };
}

function follow(plot, tip, cross, series, { x, from, to, format, wide }) {
  const times = [...new Set(series.flatMap((line) => line.points.map((p) => p[0])))].sort((a, b) => a - b);
  let at = times.length - 1;
  const show = (index) => {
    at = Math.max(0, Math.min(times.length - 1, index));
    const time = times[at];
    const lines = series.map((line) => {
      const point = line.points.find((p) => p[0] === time);
      return point && point[1] !== null ? h("div", null, `${line.name} ${format(point[1])}`) : null;
    });
    tip.replaceChildren(h("div", { class: "now" }, clock(time)), ...lines.filter(Boolean));
    const share = (x(time) / wide) * plot.clientWidth;
    tip.hidden = false;
    tip.style.left = `${Math.min(Math.max(0, share + 12), plot.clientWidth - tip.offsetWidth)}px`;
    cross.setAttribute("x1", x(time));
    cross.setAttribute("x2", x(time));
    cross.setAttribute("visibility", "visible");
  };
  const hide = () => { tip.hidden = true; cross.setAttribute("visibility", "hidden"); };
  plot.addEventListener("pointermove", (event) => {
    const box = plot.getBoundingClientRect();
    const time = from + (((event.clientX - box.left) / box.width) * wide - LEFT) / (wide - LEFT - RIGHT) * (to - from);
    let best = 0;
    times.forEach((t, index) => { if (Math.abs(t - time) < Math.abs(times[best] - time)) best = index; });
    show(best);
  });
  plot.addEventListener("pointerleave", hide);
  plot.addEventListener("blur", hide);
  plot.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    show(at + step);
  });
}

// --- what is plotted of a job ---------------------------------------------------------------

const COLOURS = [0, 1, 2, 3, 4, 5, 6, 7].map((n) => `var(--c${n})`);

function highest(groups) {
  // As many stages or outputs as there are colours: those that reach highest, in their order.
  const peak = (group) => Math.max(...group.flatMap((line) => line.points.map((p) => p[1] ?? 0)));
  const there = groups.filter((group) => peak(group) > 0);
  const shown = new Set([...there].sort((a, b) => peak(b) - peak(a)).slice(0, COLOURS.length));
  // A stage has one colour in all charts, unless there are more stages than colours.
  const ranked = groups.length > COLOURS.length ? groups.filter((group) => shown.has(group)) : groups;
  const series = there.filter((group) => shown.has(group)).flatMap((group) => group.map((line) => ({ ...line, colour: COLOURS[ranked.indexOf(group)] })));
  return { series, more: there.length - shown.size };
}

function percentileOf(counts, share) {
  const wanted = share * sum(Object.values(counts));
  let soFar = 0;
  for (const bucket of Object.keys(counts).map(Number).sort((a, b) => a - b)) {
    soFar += counts[bucket];
    if (soFar >= wanted) return 1e-4 * 10 ** (bucket / 20);
  }
  return null;
}

function sampled(view) {
  // What was so before the first host came is not worth a plot.
  const samples = view.history.samples;
  const first = samples.findIndex((sample) => sample[3] > 0 || sample[2] > 0);
  return first < 0 ? [] : samples.slice(Math.max(0, first - 1));
}

function charts(view, room) {
  const samples = sampled(view);
  if (!samples.length) return [h("p", { class: "empty" }, "No figures over time were kept for this job yet.")];
  const from = samples[0][0] - samples[0][1], to = samples[samples.length - 1][0];
  const marks = view.story.episodes.map((e) => ({ time: e.began, what: e.title }));
  const columns = room >= TWO_COLUMNS ? 2 : 1;
  const common = { marks, from, to, wide: Math.floor((room - BETWEEN * (columns - 1)) / columns) - WITHIN };
  const points = (value) => samples.map((p) => [p[0], value(p), p[1]]);
  const delays = highest(view.outputs.map((output, n) => [
    { name: `${output.title} p50`, points: points((p) => percentileOf(p[8][n] || {}, 0.5)) },
    { name: "p99", faint: true, points: points((p) => percentileOf(p[8][n] || {}, 0.99)) },
  ]));
  const stages = view.stages.filter((stage) => !stage.source);
  const byStage = (index) => highest(stages.map((stage) => [{ name: `${stage.number} ${stageName(stage)}`, points: points((p) => p[index][stage.number] ?? null) }]));
  return [
    chart({ title: "Events read a second", series: [{ name: "events/s", colour: COLOURS[0], points: points((p) => p[2]) }], format: short, ...common }),
    chart({ title: "Delay from sources to outputs", ...delays, format: seconds, logarithmic: true, ...common }),
    chart({ title: "Rows that wait to be read", ...byStage(5), format: short, ...common }),
    chart({ title: "Rows in state", ...byStage(6), format: short, ...common }),
  ];
}

// What has happened to the job: lanes over time, and its story with losses as episodes.

const TONES = { lost: "bad", recovered: "good", host: "good", placed: "calm", trouble: "warn", waits: "warn", end: "still", manager: "still", done: "still", checkpoint: "still", commit: "still" };
const LANES = [
  ["losses", (line) => line.kind === "lost", "var(--c3)"],
  ["hosts", (line) => line.kind === "host", "var(--c2)"],
  ["moves", (line) => line.kind === "placed" || line.kind === "recovered", "var(--c0)"],
  ["checkpoints", (line) => line.kind === "checkpoint", "var(--c5)"],
  ["commits", (line) => line.kind === "commit", "var(--c4)"],
  ["the rest", (line) => !["lost", "host", "placed", "recovered", "checkpoint", "commit"].includes(line.kind), "var(--dim)"],
];
const STEP = 24;
const FIRST_LINES = 12;

function lanes(view, open, room) {
  const lines = view.story.lines;
  if (!lines.length) return h("p", { class: "empty" }, "Nothing has happened yet.");
  const from = lines[0].time;
  const to = Math.max(lines[lines.length - 1].time, isOver(view) ? 0 : view.status.time, from + 1);
  const width = Math.max(300, room), left = 88, right = 14, high = LANES.length * STEP + 24;
  const x = (t) => left + ((t - from) / (to - from)) * (width - left - right);
  const drawn = LANES.map(([name, holds, colour], lane) => {
    const y = lane * STEP + 16;
    const seen = new Set();
    const marks = lines.filter(holds).filter((line) => {
      const at = Math.round(x(line.time));  // more cannot be told apart
      return !seen.has(at) && seen.add(at);
    }).map((line) => s("circle", { cx: x(line.time), cy: y, r: lane < 3 ? 4 : 2.4, css: { fill: colour } }, s("title", null, `${clock(line.time, true)} ${line.vertex} ${line.what}`)));
    return [s("text", { x: 0, y: y + 4 }, name), s("line", { class: "rail", x1: left, x2: width - right, y1: y, y2: y }), marks];
  });
  view.story.episodes.forEach((episode, index) => {
    const end = x(episode.ended ?? to);
    drawn.push(s("rect", {
      class: "episode", x: x(episode.began) - 4, y: 10, width: Math.max(8, end - x(episode.began) + 8), height: 12, rx: 6,
      tabindex: 0, role: "button", "data-episode": index, "aria-label": episodeTitle(episode),
      onclick: () => open(episode), onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(episode); } },
    }, s("title", null, episodeTitle(episode))));
  });
  drawn.push(s("text", { x: left, y: high - 2 }, width < 600 ? clock(from) : day(from)), s("text", { x: width - right, y: high - 2, "text-anchor": "end" }, clock(to)));
  return h("div", { class: "lanes" }, s("svg", { viewBox: `0 0 ${width} ${high}`, width, height: high, role: "group", "aria-label": "what has happened over time" }, drawn));
}

function episodeTitle(episode) {
  const end = episode.ended === null ? "not over yet" : `running again after ${seconds(episode.ended - episode.began)}`;
  const hit = episode.vertices.length ? `${plural(episode.vertices.length, "vertex", "vertices")} lost, ` : "";
  return `${episode.title} (${hit}${end})`;
}

function told(line) {
  return h("span", { class: "line" },
    h("span", { class: `dot ${TONES[line.kind] || "still"}` }),
    h("time", { datetime: moment(line.time) || "", title: day(line.time) }, clock(line.time, true)),
    line.vertex ? h("span", { class: "who" }, line.vertex) : null, line.what);
}

function storyList(view, state, redraw) {
  const inEpisodes = new Set(view.story.episodes.flatMap((e) => e.lines.map(keyOf)));
  const items = [];
  for (const episode of view.story.episodes) items.push({ time: episode.began, episode });
  for (const line of view.story.lines) {
    if (inEpisodes.has(keyOf(line))) continue;
    if (!state.routine && (line.kind === "checkpoint" || line.kind === "commit")) continue;
    items.push({ time: line.time, line });
  }
  items.sort((a, b) => b.time - a.time);
  const shown = items.slice(0, state.most);
  const list = h("ul", { class: "story" }, shown.map((item) => h("li", null, item.line ? told(item.line) : episodeItem(item.episode, state))));
  const more = items.length > shown.length ? h("button", { type: "button", class: "plain", "data-focus": "more", onclick: () => { state.most *= 4; redraw(); } }, `${count(items.length - shown.length)} more`) : null;
  const box = h("input", { type: "checkbox", "data-focus": "routine", onchange: (event) => { state.routine = event.target.checked; redraw(); } });
  box.checked = state.routine;
  const left = view.story.left_out ? h("span", { class: "freshness" }, `${count(view.story.left_out)} earlier lines: weir story`) : null;
  return [h("div", { class: "bar" }, h("label", null, box, "checkpoints and commits too"), left), list, more];
}

function keyOf(line) {
  return `${line.time} ${line.vertex} ${line.what}`;
}

function episodeItem(episode, state) {
  const key = String(episode.began);
  const details = h("details", { "data-began": key, ontoggle: (event) => { event.target.open ? state.open.add(key) : state.open.delete(key); } },
    h("summary", { "data-focus": `episode ${key}` }, h("span", { class: "dot bad" }), h("time", { title: day(episode.began) }, clock(episode.began, true)), episodeTitle(episode)),
    h("ul", null, episode.lines.map((line) => h("li", null, told(line)))));
  details.open = state.open.has(key);
  return details;
}

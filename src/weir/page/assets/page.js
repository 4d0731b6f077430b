// The page: it draws a view, and (if it is served) asks for the next one every second.

const ASK_EVERY = 1000;
const state = { chosen: null, routine: false, allKept: false, most: FIRST_LINES, open: new Set(), view: null, drawn: {} };
const byId = (id) => document.getElementById(id);
const graph = new Graph(byId("graph"), (node) => { state.chosen = state.chosen === node ? null : node; draw(); });

function section(id, depends, build) {
  // What has not changed is left alone, so that nobody loses a selection or their place.
  const signature = JSON.stringify(depends);
  if (state.drawn[id] === signature) return;
  const root = byId(id);
  const focused = root.contains(document.activeElement) ? document.activeElement.dataset.focus : undefined;
  root.replaceChildren(...[build()].flat(Infinity).filter((part) => part !== null && part !== undefined));
  state.drawn[id] = signature;
  if (focused !== undefined) root.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
}

const STATES = { running: "good moving", starting: "calm moving", checking: "calm moving", finished: "good", stopped: "warn", failed: "bad", ended: "warn", "no news": "warn" };

function heading(view) {
  const status = view.status, name = view.quiet ? "no news" : status ? status.state : "no report yet";
  const notes = [];
  if (view.quiet) notes.push(h("p", { class: "note warn" }, `It was ${status.state} when it was last heard of, ${count(view.quiet)} s before this was read. If its process is gone, weir run … --resume goes on.`));
  if (status && status.error) notes.push(h("p", { class: "note bad" }, status.error));
  if (status && status.trouble) notes.push(h("p", { class: "note warn" }, status.trouble));
  for (const what of status ? status.preparing : []) notes.push(h("p", { class: "note calm" }, what));
  for (const problem of view.problems) notes.push(h("p", { class: "note warn" }, `cannot be read: ${problem}`));
  if (status && !view.stages.length) notes.push(h("p", { class: "note warn" }, "This store has no plan to draw: an earlier version of Weir has made it."));
  document.title = `${clean(view.title)} · ${clean(name)} · Weir`;
  return [h("header", null, h("h1", null, view.title), h("span", { class: `pill ${STATES[name] || "still"}` }, name),
    h("span", { class: "where" }, view.location), h("span", { class: "freshness", id: "freshness" }, status ? `as of ${day(status.time)}` : "")), notes];
}

function draw() {
  const view = state.view;
  const status = view.status;
  section("head", [view.title, view.location, view.quiet, status && [status.state, status.time, status.error, status.trouble, status.preparing], view.problems, view.stages.length], () => heading(view));
  section("tiles", [status, view.delays, view.kept, view.history.samples.length], () => tiles(view));
  graph.show(view, state.chosen);
  section("waits", view.waits, () => waitList(view.waits) || []);
  section("panel-place", [state.chosen, status, view.delays], () => (state.chosen ? panel(view, state.chosen, () => { const node = state.chosen; state.chosen = null; draw(); graph.cards.get(node)?.focus(); }) : []));
  const room = byId("charts").clientWidth;
  byId("charts").classList.toggle("two", room >= TWO_COLUMNS);
  section("charts", [view.history, view.story.episodes.length, room], () => charts(view, room));
  const inside = byId("lanes").clientWidth;
  section("lanes", [view.story, isOver(view) ? 0 : Math.round(status.time), inside], () => lanes(view, openEpisode, inside));
  section("story", [view.story, state.routine, state.most], () => storyList(view, state, draw));
  section("hosts", [status && [status.hosts, status.vertices], view.story.lines.length], () => hosts(view));
  section("outputs", [view.committed, view.outputs], () => outputs(view));
  section("turned", [status && status.vertices.map((v) => [v.late, v.bad, v.events]), view.committed, view.stages.length], () => turnedAway(view));
  section("store", [view.kept, state.allKept], () => storeTable(view, state, draw));
}

function openEpisode(episode) {
  const key = String(episode.began);
  state.open.add(key);
  state.most = Math.max(state.most, state.view.story.lines.length);
  draw();
  const details = document.querySelector(`[data-began="${CSS.escape(key)}"]`);
  details.open = true;
  details.querySelector("summary").focus();
}

function take(view) {
  // Rates on edges are differences between two views.
  const before = state.view;
  for (const flow of view.flows) {
    const old = before && before.flows.find((f) => f.source === flow.source && f.target === flow.target && f.to_output === flow.to_output);
    const passed = before && before.status && view.status ? view.status.time - before.status.time : 0;
    flow.rate = old ? (passed > 0 ? Math.max(0, flow.read - old.read) / passed : old.rate) : null;
  }
  state.view = view;
  draw();
}

// --- a page that is served ------------------------------------------------------------------

let etag = null;

async function ask(token) {
  let view = null, tag = etag;
  try {
    const headers = { Authorization: `Bearer ${token}` };
    if (etag) headers["If-None-Match"] = etag;
    const answer = await fetch("view", { headers, cache: "no-store" });
    if (answer.status === 401) return lost("The token in the address is not the server's: open the address that weir printed.");
    if (answer.status === 200) {
      tag = answer.headers.get("ETag");
      view = await answer.json();
    } else if (answer.status !== 304) throw new Error(`the server answers ${answer.status}`);
    byId("lost").replaceChildren();
  } catch (error) {
    lost("The page has lost its server, and shows what was so last. weir ui serves it again.");
  }
  setTimeout(() => ask(token), ASK_EVERY);
  if (!view) return;
  try {
    take(view);
    etag = tag; // only of what was drawn: else it would not be sent again
  } catch (error) {
    lost(`The page cannot draw what the server tells, which is a bug of Weir: ${error.message}`);
    throw error;
  }
}

function lost(why) {
  byId("lost").replaceChildren(h("p", { class: "note warn", role: "status" }, why));
}

let resized;
addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(() => state.view && draw(), 100); });

const kept = byId("view").textContent;
if (kept.trim()) take(JSON.parse(kept));
else ask(new URLSearchParams(location.hash.slice(1)).get("token") || "");

"use strict";
// Asks the server for news once a second, and puts it on the page.

const EVERY = 1000;
const at = (id) => document.getElementById(id);
const make = (tag, text, more = {}) => Object.assign(document.createElement(tag), { textContent: text ?? "" }, more);

// What is shown now. `points` are those that the server sent, in order; `first` is the number of the oldest.
const state = { query: 0, view: "whole", axis: "at", epoch: -1, first: 0, points: [], events: [], drawn: [], shape: "" };

async function get(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

async function look() {
  const asked = state.query;
  // The last point may stand for more micro-batches by now: it is asked for again.
  const from = Math.max(state.first + state.points.length - 1, 0);
  try {
    const [cards, page] = await Promise.all([
      get("queries"), get(`query/${asked}?view=${state.view}&epoch=${state.epoch}&from=${from}`),
    ]);
    if (asked !== state.query) return;
    take(page.series);
    show(cards, page);
  } catch (problem) {
    at("state").dataset.state = "lost";
    at("state").textContent = problem instanceof TypeError
      ? "The dashboard does not answer: it was stopped, or the connection is lost. This page goes on when it is back."
      : String(problem.message);
  }
}

function take(series) {
  if (series.epoch !== state.epoch || series.from > state.first + state.points.length || series.from < state.first) {
    state.points = series.points;
    state.first = series.from;
  } else {
    state.points.splice(series.from - state.first, Infinity, ...series.points);
    state.points.splice(0, series.first - state.first);
    state.first = Math.max(state.first, series.first);
  }
  state.epoch = series.epoch;
}

function show(cards, page) {
  document.title = `${page.name} – shedjoin`;
  at("queries").replaceChildren(...(cards.length < 2 ? [] : cards.map(card)));
  at("name").textContent = page.name;
  at("name").title = page.path;
  at("state").dataset.state = page.state;
  at("state").textContent = page.words;
  at("notes").replaceChildren(...page.notes.map((note) => make("li", note)));
  at("settings").replaceChildren(...Object.entries(page.settings).map(([name, value]) => {
    const pair = make("div");
    pair.append(make("dt", name), make("dd", value));
    return pair;
  }));
  const some = state.points.length > 0;
  for (const id of ["tiles", "switches", "charts", "shards"]) at(id).hidden = !some;
  state.events = page.events.map((event) => ({
    ...event, batch: state.points.find((point) => point.at >= event.at)?.batch ?? null,
  }));
  at("changes").hidden = state.events.length === 0;
  at("events").replaceChildren(...state.events.map((event) => {
    const item = make("li");
    item.append(make("time", new Date(1000 * event.at).toLocaleString()), event.what);
    return item;
  }));
  if (!some) return clear();
  const drawn = { ...page, series: { ...page.series, points: state.points } };
  at("tiles").replaceChildren(...tiles(drawn));
  at("width").textContent = page.series.width > 1 ? `One point is ${page.series.width} micro-batches.` : "";
  bars(page);
  drawCharts(drawn);
}

function card(query, number) {
  const recall = query.recall ? ` ${percent(query.recall[0])}` : "";
  const link = make("a", query.name + recall, { href: `#${number}`, title: query.words });
  link.dataset.state = query.state;
  if (number === state.query) link.setAttribute("aria-current", "page");
  return link;
}

function tiles(page) {
  const last = state.points[state.points.length - 1];
  const amount = page.unit === "bytes" ? bytes : (value) => compact.format(value);
  const stored = sum(last.stored);
  const total = (of) => sum(state.points.slice(-20).map(of));
  const rows = total((p) => sum(p.rows));
  const shed = total((p) => p.evicted + p.scheduled + p.dropped);
  const time = total((p) => p.interval);
  const each = (count) => time ? perSecond(count / time) : "–";
  const recall = last.recall;
  const found = [];
  if (recall) found.push(["Recall", percent(recall[0]), `${percent(recall[1])} to ${percent(recall[2])}`]);
  if (last.recent) found.push(["Recent recall", percent(last.recent[0]), `${percent(last.recent[1])} to ${percent(last.recent[2])}`]);
  found.push(last.cap
    ? ["Memory", percent(stored / last.cap), `${amount(stored)} of ${amount(last.cap)}${page.unit === "tuples" ? " tuples" : ""}`]
    : ["Memory", amount(stored), `${page.unit === "tuples" ? "tuples, " : ""}no budget`]);
  found.push(["Rows", each(rows), page.streams.map((name, side) => `${name} ${each(total((p) => p.rows[side]))}`).join(", ")]);
  found.push(["Results", each(total((p) => p.results)), "results a second"]);
  found.push(["Shed", rows ? percent(shed / rows) : "–", "of the rows"]);
  const late = total((p) => p.late);
  if (last.certain != null) {
    const alone = total((p) => p.alone), unknown = total((p) => p.unknown);
    found.push(["Rows given alone", `≥ ${percent(unknown ? alone / (alone + unknown) : 1)}`, "delivered for certain"]);
    found.push(["Without a partner", compact.format(total((p) => p.certain)), `certain; ${compact.format(total((p) => p.unknown))} unknown`]);
  }
  found.push(["Late", compact.format(late), rows ? `rows, ${percent(late / rows)}` : "rows"]);
  if (page.fractions) found.push(["Compared with", percent(page.fractions[0]), "of the windows"]);
  found.push(["Micro-batch", seconds(last.seconds), `number ${whole.format(last.batch)}`]);
  return found.map(([name, value, more]) => {
    const tile = make("div", null, { className: "tile" });
    tile.append(make("span", name), make("b", value), make("span", more));
    return tile;
  });
}

function bars(page) {
  const amount = page.unit === "bytes" ? bytes : number;
  const shards = Object.entries(page.shards);
  at("shards").hidden = shards.length < 2;
  const most = Math.max(1, ...shards.map(([, parts]) => sum(parts)));
  at("bars").replaceChildren(...shards.map(([shard, parts]) => {
    const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    picture.setAttribute("viewBox", "0 0 1000 10");
    picture.setAttribute("preserveAspectRatio", "none");
    let before = 0;
    parts.forEach((part, side) => {
      const box = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      const [x, wide] = [1000 * before / most, 1000 * part / most];
      for (const [name, value] of Object.entries({ x, y: 0, width: wide, height: 10 })) box.setAttribute(name, value);
      box.style.fill = `var(--c${side % 8})`;
      picture.append(box);
      before += part;
    });
    const row = make("div", null, { className: "bar", title: page.streams.map((name, side) => `${name} ${amount(parts[side])}`).join(", ") });
    row.append(make("span", `shard ${shard}`), picture, make("span", amount(sum(parts))));
    return row;
  }));
}

function drawCharts(page) {
  const found = charts(page);
  const shape = JSON.stringify([state.query, state.axis, page.unit, found.map((chart) => [chart.title, chart.lines.map((one) => one.label)])]);
  if (shape === state.shape) return state.drawn.forEach((one) => one.update());
  clear();
  state.drawn = found.map((chart) => draw(at("charts"), chart, state));
  state.shape = shape;
}

function clear() {
  state.drawn.forEach((one) => one.plot.destroy());
  state.drawn = [];
  state.shape = "";
  at("charts").replaceChildren();
}

function startOver() {
  Object.assign(state, { epoch: -1, first: 0, points: [] });
  clear();
  look();
}

function byAddress() {
  const number = Number(location.hash.slice(1));
  state.query = Number.isInteger(number) && number >= 0 ? number : 0;
  startOver();
}

for (const input of document.querySelectorAll("#switches input")) {
  input.addEventListener("change", () => {
    state[input.name] = input.value;
    startOver();
  });
}
addEventListener("hashchange", byAddress);
addEventListener("resize", () => state.drawn.forEach((one) => one.fit()));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => state.drawn.forEach((one) => one.plot.redraw()));

async function forEver() {
  if (!document.hidden) await look();
  setTimeout(forEver, EVERY);
}

byAddress();
setTimeout(forEver, EVERY);

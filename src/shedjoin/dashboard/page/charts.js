"use strict";
// The charts: what each shows of a point, and how uPlot draws it.

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

const number = (value) => value == null ? "–" : Math.abs(value) < 10 && value % 1 ? value.toFixed(2) : compact.format(value);
const percent = (value) => value == null ? "–" : `${(100 * value).toFixed(1)}%`;
const perSecond = (value) => value == null ? "–" : `${number(value)}/s`;
const seconds = (value) => value == null ? "–" : `${value < 10 ? value.toFixed(2) : value.toFixed(0)} s`;
const bytes = (value) => {
  if (value == null) return "–";
  const step = ["bytes", "kB", "MB", "GB", "TB"];
  let place = 0;
  for (; value >= 1000 && place < 4; place++) value /= 1000;
  return `${place ? value.toPrecision(3) : value.toFixed(0)} ${step[place]}`;
};

const sum = (values) => values.reduce((a, b) => a + b, 0);
// Since when the first micro-batch had been waited for is not known.
const rate = (count, point) => count == null || point.first || !point.interval ? null : count / point.interval;
const share = (count, point) => sum(point.rows) ? count / sum(point.rows) : null;

// A line: its label, its value of a point, and how it looks.
const line = (label, of, look = {}) => ({ label, of, colour: "--c0", ...look });

function charts(page) {
  const amount = page.unit === "bytes" ? bytes : number;
  const streams = page.streams;
  const points = page.series.points;
  const last = points[points.length - 1] ?? {};
  const has = (field) => points.some((point) => point[field]);
  const capped = has("cap");
  const found = [];
  if (has("recall") || has("recent")) {
    found.push({
      title: "Recall", note: "with its 95% limits", format: percent, range: recallRange,
      lines: [
        line("since the beginning", (p) => p.recall?.[0]),
        line("low", (p) => p.recall?.[1], { thin: true, band: "end" }),
        line("high", (p) => p.recall?.[2], { thin: true, band: "begin" }),
        line("recent", (p) => p.recent?.[0], { colour: "--c1", dash: [4, 4] }),
      ],
    });
  }
  found.push({
    title: "Memory by stream", note: `${page.unit}, stacked`, format: amount, zero: true,
    lines: [
      ...streams.map((name, at) => line(name, (p) => sum(p.stored.slice(0, at + 1)), {
        colour: `--c${at % 8}`, stacked: true, says: (p) => p.stored[at],
      })),
      line("peak", (p) => capped ? p.peak : null, { colour: "--soft", thin: true, unless: !capped }),
      line("budget", (p) => p.cap, { colour: "--bad", dash: [8, 4], unless: !capped, steps: true }),
    ],
  });
  const many = Object.keys(page.shards).length > 16;
  const parts = many ? ["smallest", "mean", "largest"] : Object.keys(page.shards).map((shard) => `shard ${shard}`);
  if (Object.keys(page.shards).length > 1) {
    found.push({
      title: "Memory by shard", note: page.unit, format: amount, zero: true,
      lines: parts.map((name, at) => line(name, (p) => p.shards[at], { colour: `--c${at % 8}`, dash: at < 8 ? null : [4, 4] })),
    });
  }
  found.push({
    title: "Rates", note: "rows and results a second", format: perSecond, zero: true,
    lines: [
      ...streams.map((name, at) => line(name, (p) => rate(p.rows[at], p), { colour: `--c${at % 8}` })),
      line("results", (p) => rate(p.results, p), { colour: "--text", dash: [6, 3] }),
    ],
  });
  found.push({
    title: "Shed, by reason", note: "share of the rows", format: percent, zero: true,
    lines: [
      line("evicted", (p) => share(p.evicted, p), { colour: "--c5" }),
      line("schedule", (p) => share(p.scheduled, p), { colour: "--c3", unless: !has("scheduled") }),
      line("dropped before shards", (p) => share(p.dropped, p), { colour: "--c2", unless: !has("dropped") }),
    ],
  });
  found.push({
    title: last.certain == null ? "Late rows" : "Late rows, and rows without a partner", note: "rows a second",
    format: perSecond, zero: true,
    lines: [
      line("late", (p) => rate(p.late, p), { colour: "--c1" }),
      line("certain", (p) => rate(p.certain, p), { colour: "--c2", unless: last.certain == null }),
      line("unknown", (p) => rate(p.unknown, p), { colour: "--c3", unless: last.certain == null }),
    ],
  });
  found.push({
    title: "Micro-batches", note: "seconds", format: seconds, zero: true,
    lines: [
      line("join, slowest shard", (p) => p.seconds),
      line("from one end to the next", (p) => p.first ? null : p.interval / p.batches, { colour: "--c1", dash: [4, 4] }),
    ],
  });
  for (const chart of found) chart.lines = chart.lines.filter((one) => !one.unless);
  return found;
}

function recallRange(plot, low, high) {
  if (low == null) return [0, 1];
  const room = Math.max(0.02, (Math.min(high, 1) - low) * 0.15);
  return [Math.max(0, Math.floor((low - room) * 50) / 50), Math.min(1, Math.ceil((high + room) * 50) / 50)];
}

function columns(chart, points, axis) {
  return [points.map((p) => p[axis]), ...chart.lines.map((one) => points.map((p) => one.of(p) ?? null))];
}

// One chart in its figure. `state` has the points, the axis and the events of now.
function draw(place, chart, state) {
  const figure = document.createElement("figure");
  figure.dataset.chart = chart.title;
  const caption = document.createElement("figcaption");
  caption.append(`${chart.title} `, Object.assign(document.createElement("small"), { textContent: chart.note }));
  figure.append(caption);
  place.append(figure);
  const grid = { stroke: () => colour("--grid"), width: 1 };
  const axes = { stroke: () => colour("--soft"), grid, ticks: grid, font: "12px system-ui, sans-serif" };
  const begin = chart.lines.findIndex((one) => one.band === "begin") + 1;
  const end = chart.lines.findIndex((one) => one.band === "end") + 1;
  const byTime = state.axis === "at";
  const plot = new uPlot({
    width: width(figure), height: 220,
    scales: { x: { time: byTime }, y: { range: chart.range ?? ((u, low, high) => [0, high > 0 ? high * 1.08 : 1]) } },
    cursor: { sync: { key: "shedjoin", scales: ["x", null] }, points: { size: 7 } },
    legend: { live: true },
    bands: [...(begin ? [{ series: [begin, end], fill: () => colour("--band") }] : []), ...stack(chart)],
    axes: [
      { ...axes, space: 60, values: byTime ? clock : (u, ticks) => ticks.map((one) => one % 1 ? "" : whole.format(one)) },
      { ...axes, size: 62, values: (u, ticks) => ticks.map((one) => chart.format(one)) },
    ],
    series: [
      byTime ? { label: "time", value: "{YYYY}-{MM}-{DD} {HH}:{mm}:{ss}" }
        : { label: "micro-batch", value: (u, value) => value == null ? "–" : whole.format(value) },
      ...chart.lines.map((one, at) => ({
        label: one.label,
        stroke: () => colour(one.colour),
        fill: one.stacked && at === 0 ? () => colour(one.colour) + "55" : undefined,
        width: one.thin ? 1 : 2,
        dash: one.dash ?? undefined,
        points: { show: (u) => u.data[0].length < 3 },
        spanGaps: false,
        paths: one.steps ? uPlot.paths.stepped({ align: -1 }) : undefined,
        value: (u, value, series, place) => {
          const point = state.points[place ?? state.points.length - 1];
          return point === undefined ? "–" : chart.format(one.says ? one.says(point) : one.of(point));
        },
      })),
    ],
    hooks: { draw: [(u) => drawEvents(u, state)] },
  }, columns(chart, state.points, state.axis), figure);
  return {
    plot, figure,
    update: () => plot.setData(columns(chart, state.points, state.axis)),
    fit: () => plot.setSize({ width: width(figure), height: 220 }),
  };
}

// Each stream but the first is filled down to the one below.
const stack = (chart) => chart.lines.flatMap((one, at) => !one.stacked || at === 0 ? [] : [
  { series: [at + 1, at], fill: () => colour(one.colour) + "55" },
]);

// Ticks of a time axis; the day stands below where it begins.
function clock(u, ticks, axis, space, step) {
  let before = "";
  return ticks.map((tick) => {
    const at = new Date(1000 * tick);
    const two = (value) => String(value).padStart(2, "0");
    const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
    const time = step >= 86400 ? "" : `${two(at.getHours())}:${two(at.getMinutes())}${step < 60 ? `:${two(at.getSeconds())}` : ""}`;
    const text = day === before ? time : `${time}\n${day}`;
    before = day;
    return text;
  });
}

const width = (figure) => Math.max(200, figure.clientWidth - 26);

// Changes and restarts: a line with the number that it has in the list below.
function drawEvents(u, state) {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour("--soft");
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  state.events.forEach((event, at) => {
    const x = event[state.axis];
    if (x == null || x < u.scales.x.min || x > u.scales.x.max) return;
    const place = u.valToPos(x, "x", true);
    ctx.beginPath();
    ctx.moveTo(place, bbox.top);
    ctx.lineTo(place, bbox.top + bbox.height);
    ctx.stroke();
    ctx.fillText(String(at + 1), place + 3 * devicePixelRatio, bbox.top + 11 * devicePixelRatio);
  });
  ctx.restore();
}

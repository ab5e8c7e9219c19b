// Charts: functions that return an ECharts option for the data and the theme.  Charts are created when they
// are scrolled into view, and all of them before printing.

const charts = [];

const SERIES_COLORS = ["c1", "c2", "c3", "c4", "c5", "c6"];
const seriesColor = i => color(SERIES_COLORS[i % SERIES_COLORS.length]);

// For any number of values: Math.min(...values) has a limit.
const leastOf = values => values.reduce((least, value) => Math.min(least, value), Infinity);
const mostOf = values => values.reduce((most, value) => Math.max(most, value), -Infinity);

// Options common to all charts.
function baseOption() {
  return {
    animation: false,
    textStyle: { fontFamily: getComputedStyle(document.body).fontFamily, color: color("ink") },
    grid: { left: 8, right: 14, top: 14, bottom: 6, containLabel: true },
    tooltip: {
      confine: true, backgroundColor: color("panel"), borderColor: color("line"), padding: [8, 10],
      extraCssText: "box-shadow: 0 4px 16px rgba(0,0,0,.14); border-radius: 8px;",
    },
  };
}

function axis(more) {
  return {
    nameLocation: "middle", nameGap: 28, nameTextStyle: { color: color("dim"), fontSize: 12 },
    axisLine: { lineStyle: { color: color("line") } }, axisTick: { show: false },
    axisLabel: { color: color("dim"), fontSize: 11, hideOverlap: true, ...(more && more.labels) },
    splitLine: { lineStyle: { color: color("faint") } }, ...more,
  };
}

// One prefix per axis, chosen by its largest value: 0.05 and 0.2 J are 50 and 200 mJ.
function unitAxis(unit, more, largest) {
  const scaled = ["J", "s", "W"].includes(unit) && largest > 0;
  const [scale, prefix] = (scaled && PREFIXES.find(([least]) => largest >= least && (unit !== "s" || least <= 1))) || [1, ""];
  const show = value => scaled ? Number((value / scale).toPrecision(6)).toLocaleString("en", { maximumSignificantDigits: 6 }) + " " + prefix + unit
    : withUnit(value, unit, 3).replace(/\.0+(?= )/, "");
  return axis({ ...more, labels: { formatter: show, ...(more && more.labels) } });
}

// A tooltip is a DOM element, so that names in it are not parsed as HTML.
function tip(title, pairs) {
  return make("div", { class: "tip" }, make("b", {}, title),
    pairs.map(pair => pair ? make("div", {}, make("span", {}, pair[0]), make("span", {}, pair[1])) : make("hr")));
}

// An element that becomes a chart.  option() is called again when the theme changes.
function chartElement(label, option, { size = "", ready = null } = {}) {
  const element = make("div", { class: "chart " + size, role: "img", "aria-label": label });
  const entry = {
    element, chart: null,
    show() {
      if (this.chart || !element.isConnected) return;
      this.chart = echarts.init(element, null, { renderer: "canvas" });
      this.draw();
      if (ready) ready(this.chart, this);
    },
    draw() { if (this.chart) this.chart.setOption(option(this.chart), { notMerge: true }); },
  };
  charts.push(entry);
  nearScreen.observe(element);
  sizes.observe(element);
  return element;
}

const nearScreen = new IntersectionObserver(seen => {
  for (const { target, isIntersecting } of seen)
    if (isIntersecting) charts.find(entry => entry.element === target)?.show();
}, { rootMargin: "300px" });

const sizes = new ResizeObserver(changed => {
  for (const { target } of changed) charts.find(entry => entry.element === target)?.chart?.resize();
});

// Redraws the chart of an element; `resized` if its height has changed.
function redrawChart(element, resized) {
  const entry = charts.find(found => found.element === element);
  if (resized) entry?.chart?.resize();
  entry?.draw();
}

// Disposes the charts of removed elements.
function dropCharts() {
  for (let i = charts.length - 1; i >= 0; i--)
    if (!charts[i].element.isConnected) {
      nearScreen.unobserve(charts[i].element);
      sizes.unobserve(charts[i].element);
      charts[i].chart?.dispose();
      charts.splice(i, 1);
    }
}

theme.listeners.push(() => { for (const entry of charts) entry.draw(); });

addEventListener("beforeprint", () => {
  theme.forPrint = true;
  document.documentElement.classList.add("printing");
  for (const details of document.querySelectorAll("details.printed")) details.open = true;
  for (const entry of charts) entry.show();
  theme.apply();
  for (const entry of charts) {
    entry.chart?.resize();
    entry.chart?.getZr().flush();
  }
});
addEventListener("afterprint", () => {
  theme.forPrint = false;
  document.documentElement.classList.remove("printing");
  theme.apply();
  for (const entry of charts) entry.chart?.resize();
});

// ---- distributions ----

function histogramOption(found, unit) {
  const { counts, low, step, log, spread } = found;
  const edge = i => log ? low * Math.exp(i * step) : low + i * step;
  const last = counts.length - 1;
  const bars = counts.map((count, i) => [edge(i), found.beyond && i === last ? edge(i) * (log ? Math.exp(step) : 1) + (log ? 0 : step) : edge(i + 1), count]);
  const mark = (value, name) => ({ xAxis: value, label: { formatter: name } });
  const air = last === 0 ? step : 0; // centers a single bar
  return {
    ...baseOption(),
    grid: { left: 6, right: 10, top: 24, bottom: 4, containLabel: true },
    xAxis: unitAxis(unit, { type: log ? "log" : "value", min: bars[0][0] - air, max: bars[last][1] + air, minInterval: found.whole ? 1 : null, splitLine: { show: false },
      splitNumber: 4, labels: { showMinLabel: false, showMaxLabel: false } }, bars[last][1]),
    yAxis: axis({ type: "value", minInterval: 1, splitNumber: 3 }),
    tooltip: {
      ...baseOption().tooltip, trigger: "item",
      formatter: ({ value, dataIndex }) => {
        // For integers the bar from 19.5 to 20.5 is 20.
        const [from, to] = found.whole ? [Math.ceil(value[0]), Math.floor(value[1])] : value;
        return tip(found.beyond && dataIndex === last ? withUnit(from, unit) + " or more" : withUnit(from, unit) + (to > from ? " to " + withUnit(to, unit) : ""),
          [["queries", value[2].toLocaleString("en")]]);
      },
    },
    series: [{
      type: "custom", data: bars, encode: { x: [0, 1], y: 2 }, itemStyle: { color: color("c1") },
      renderItem: (params, api) => {
        const [x0, y0] = api.coord([api.value(0), 0]), [x1, y1] = api.coord([api.value(1), api.value(2)]);
        return {
          type: "rect", shape: { x: x0 + 0.5, y: y1, width: Math.max(1, x1 - x0 - 1), height: y0 - y1 },
          style: { fill: color(found.beyond && params.dataIndex === last ? "c6" : "c1") },
        };
      },
      markLine: {
        symbol: "none", silent: true, precision: 12, // the default is two decimals
        lineStyle: { color: color("dim"), type: [4, 3] },
        label: { color: color("dim"), fontSize: 11, position: "end", distance: 3 },
        data: (spread.p50 === spread.p95 ? [mark(spread.p50, "p50, p95")] : [mark(spread.p50, "p50"), mark(spread.p95, "p95")]).filter(m => m.xAxis <= bars[last][1]),
      },
    }],
  };
}

// ---- fits ----

const FITS = [
  { key: "output_tokens_vs_energy", group: "more", x: "output_tokens", y: "joules" },
  { key: "total_tokens_vs_energy", group: "more", x: "total_tokens", y: "joules" },
  { key: "output_tokens_vs_latency", group: "more", x: "output_tokens", y: "latency_s" },
  { key: "input_tokens_vs_ttft", group: "regressions", x: "input_tokens", y: "ttft_s" },
];
const fitFigure = fit => fit.y === "ttft_s" ? "time_to_first_token_s" : fit.y, fitUnit = fit => unitOf(fitFigure(fit));
const fitTitle = fit => headingOf(fitFigure(fit)) + " by " + FIGURES[fit.x].label;
const FIT_POINTS = 2500;

// Evenly sampled queries, not all of them.
function fitPoints(queries, fit) {
  const points = [], stride = Math.max(1, Math.ceil(queries.count / FIT_POINTS));
  const x = i => fit.x === "total_tokens" ? queries.input_tokens[i] + queries.output_tokens[i] : queries[fit.x][i];
  for (let i = 0; i < queries.count; i += stride)
    if (!(queries.flags[i] & (FLAG.failed | FLAG.canceled)) && known(x(i)) && known(queries[fit.y][i])) points.push([x(i), queries[fit.y][i], i]);
  return points;
}

function fitOption(queries, fit, result, points) {
  const xs = points.map(point => point[0]), from = Math.min(...xs), to = Math.max(...xs);
  const line = x => [x, result.intercept + result.slope * x], unit = fitUnit(fit), xLabel = FIGURES[fit.x].label;
  return {
    ...baseOption(),
    grid: { left: 6, right: 16, top: 12, bottom: 24, containLabel: true },
    xAxis: axis({ type: "value", name: xLabel, scale: true, splitLine: { show: false }, nameGap: 24, splitNumber: 5 }),
    yAxis: unitAxis(unit, { type: "value", scale: true, splitNumber: 4 }, Math.max(...points.map(point => point[1]))),
    tooltip: {
      ...baseOption().tooltip, trigger: "item",
      formatter: ({ value }) => tip(keyOf(queries, value[2]), [["subject", subjectOf(queries, value[2]) || "–"],
        [xLabel, withUnit(value[0], "")], [headingOf(fitFigure(fit)).toLowerCase(), withUnit(value[1], unit)]]),
    },
    series: [
      { type: "scatter", data: points, symbolSize: points.length > 400 ? 4 : 6, itemStyle: { color: color("c1"), opacity: points.length > 400 ? 0.35 : 0.6 } },
      { type: "line", data: [line(from), line(to)], symbol: "none", silent: true, tooltip: { show: false },
        lineStyle: { color: color("c2"), width: 2 } },
    ],
  };
}

// ---- several runs: accuracy against energy ----

// Error bars of a point in both directions, 95 % intervals; omitted if unknown.
function crossBars(params, api) {
  const [x, y] = api.coord([api.value(0), api.value(1)]), style = { stroke: color("dim"), lineWidth: 1, opacity: 0.7 };
  const line = (from, to, across) => [
    { type: "line", shape: { x1: from[0], y1: from[1], x2: to[0], y2: to[1] }, style },
    ...[from, to].map(([a, b]) => ({ type: "line", shape: { x1: a - across[0], y1: b - across[1], x2: a + across[0], y2: b + across[1] }, style })),
  ];
  const at = (dim, isX) => api.coord(isX ? [api.value(dim), api.value(1)] : [api.value(0), api.value(dim)]);
  return {
    type: "group", silent: true, children: [
      ...(known(api.value(2)) ? line([at(2, true)[0], y], [at(3, true)[0], y], [0, 3]) : []),
      ...(known(api.value(4)) ? line([x, at(4, false)[1]], [x, at(5, false)[1]], [3, 0]) : []),
    ],
  };
}

// Labels are placed next to their points, never nearer to another point.  If that is impossible for one, all points are
// numbered, and the legend explains the numbers.
const LABEL_HEIGHT = 13, LABEL_GAP = 9, LABEL_FONT = 11;
const LABEL_PLACES = [[1, 0], [-1, 0], [0, -1], [0, 1], [1, -1], [-1, -1], [1, 1], [-1, 1]];

const textWidth = (() => {
  const context = document.createElement("canvas").getContext("2d");
  return text => { context.font = LABEL_FONT + "px " + getComputedStyle(document.body).fontFamily; return context.measureText(text).width; };
})();

const overlap = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
const distance = (box, [x, y]) => Math.hypot(Math.max(box.x - x, x - box.x - box.width, 0), Math.max(box.y - y, y - box.y - box.height, 0));

// A box for each label; `own` if no other point is as near; `far` tries positions farther away.
function placeLabels(texts, places, grid, far) {
  const taken = places.map(([x, y]) => ({ x: x - 6, y: y - 6, width: 12, height: 12 }));
  return texts.map((text, i) => {
    const width = textWidth(text), [x, y] = places[i];
    const isOwn = box => places.every((place, k) => k === i || distance(box, place) > 1.5 * distance(box, places[i]) + 2);
    const boxes = (far ? [1, 2, 3, 4, 5, 6] : [1]).flatMap(step => LABEL_PLACES.map(([dx, dy]) => ({
      x: x + dx * (width / 2 + LABEL_GAP * step) - width / 2, y: y + dy * (LABEL_HEIGHT / 2 + LABEL_GAP * step) - LABEL_HEIGHT / 2, width, height: LABEL_HEIGHT, text })))
      .filter(box => box.x >= grid.x && box.x + width <= grid.x + grid.width && box.y >= 0 && box.y + LABEL_HEIGHT <= grid.y + grid.height && !taken.some(other => overlap(box, other)));
    const found = boxes.find(isOwn) || boxes[0] || { x: x + LABEL_GAP, y: y - LABEL_HEIGHT / 2, width, height: LABEL_HEIGHT, text };
    found.own = isOwn(found);
    taken.push(found);
    return found;
  });
}

// Draws all labels with the first point; `legend` explains numbers.
function labelSeries(points, legend) {
  let boxes = [];
  const draw = (params, api) => {
    const places = points.map(point => api.coord(point.value.slice(0, 2)));
    if (params.dataIndex === 0) {
      const { x, y, width, height } = params.coordSys, grid = { x, y, width: width + 50, height };
      boxes = placeLabels(points.map(point => point.name), places, grid, false);
      const numbered = boxes.some(box => !box.own);
      if (numbered) boxes = placeLabels(points.map(point => String(point.value[2] + 1)), places, grid, true);
      legend.textContent = numbered ? points.map(point => point.value[2] + 1 + " " + point.name).join(" · ") : "";
    }
    const box = boxes[params.dataIndex], place = places[params.dataIndex];
    const middle = [box.x + box.width / 2, box.y + box.height / 2];
    return { type: "group", children: [
      ...(box.own ? [] : [{ type: "line", shape: { x1: place[0], y1: place[1], x2: middle[0], y2: middle[1] }, style: { stroke: color("dim"), lineWidth: 1 } }]),
      { type: "text", style: { text: box.text, x: middle[0], y: middle[1], align: "center", verticalAlign: "middle", fill: color("ink"), stroke: color("panel"), lineWidth: 3,
        font: LABEL_FONT + "px " + getComputedStyle(document.body).fontFamily } }] };
  };
  return { type: "custom", data: points.map(point => point.value), renderItem: draw, silent: true, tooltip: { show: false }, z: 5, encode: { x: 0, y: 1 } };
}

// Points in two dimensions with their 95 % intervals, and the Pareto frontier.
// points: {x, y, place, name, xEnds, yEnds, onFront, color, symbol, labeled}; x, y: {unit, name}; `tipOf` gets a place.
function frontOption(points, x, y, legend, tipOf) {
  const short = name => name.length > 28 ? name.slice(0, 27) + "…" : name;
  const drawn = points.filter(point => known(point.x) && known(point.y)), costs = drawn.map(point => point.x);
  const marks = drawn.map(point => ({
    value: [point.x, point.y, point.place], name: short(point.name), itemStyle: { color: point.color }, symbol: point.symbol || "circle", symbolSize: point.onFront ? 13 : 10,
  }));
  const isLog = leastOf(costs) > 0 && mostOf(costs) / leastOf(costs) > 20;
  const bars = drawn.map(point => {
    const [low, high] = point.xEnds || [NaN, NaN];
    return [point.x, point.y, isLog && low <= 0 ? point.x / 10 : low, high, ...(point.yEnds || [NaN, NaN])];
  });
  const edge = drawn.filter(point => point.onFront).map(point => [point.x, point.y]).sort((a, b) => a[0] - b[0]);
  const worths = bars.flatMap(bar => [bar[1], bar[4], bar[5]]).filter(known);
  // Ticks at both ends only: one between them would overlap their labels.
  const range = mostOf(worths) - leastOf(worths), perUnit = range <= 0.1 ? 50 : range <= 0.25 ? 20 : range <= 0.5 ? 10 : 5;
  const low = Math.floor(leastOf(worths) * perUnit), high = Math.ceil(mostOf(worths) * perUnit), flat = low === high ? 1 : 0;
  const ends = y.unit === "%" ? { min: Math.max(0, low - flat) / perUnit, max: Math.min(perUnit, high + flat) / perUnit, interval: 1 / perUnit }
    : { scale: true, boundaryGap: ["8%", "8%"] };
  return {
    ...baseOption(),
    grid: { left: 28, right: 60, top: 30, bottom: 26, containLabel: true },
    xAxis: unitAxis(x.unit, { boundaryGap: ["8%", "8%"], type: isLog ? "log" : "value", scale: true, min: isLog || leastOf(bars.map(bar => known(bar[2]) ? bar[2] : bar[0])) > 0 ? null : 0,
      name: x.name }, mostOf(costs)),
    yAxis: unitAxis(y.unit, { type: "value", name: y.name, nameGap: 46, ...ends }, mostOf(worths)),
    tooltip: { ...baseOption().tooltip, trigger: "item", formatter: ({ value }) => tipOf(value[2]) },
    series: [
      { type: "line", data: edge, symbol: "none", silent: true, tooltip: { show: false }, lineStyle: { color: color("c1"), width: 1.5, type: [5, 4] } },
      { type: "custom", data: bars, encode: { x: [0, 2, 3], y: [1, 4, 5] }, renderItem: crossBars, silent: true, tooltip: { show: false }, z: 1 },
      { type: "scatter", data: marks, z: 3 },
      labelSeries(marks.filter((_, i) => drawn[i].labeled), legend),
    ],
  };
}

// runs: of DATA.settings.
function frontierOption(runs, legend) {
  const between = (pair, unit) => pair ? pair.map(end => withUnit(end, unit)).join(" to ") : "–";
  const points = runs.map((run, place) => ({ x: run.joules_per_query, y: qualityOf(run), place, name: run.name, xEnds: run.intervals.joules_per_query, yEnds: qualityEnds(run),
    onFront: run.pareto_optimal, color: color(run.pareto_optimal ? "c1" : "c6"), labeled: true }));
  return frontOption(points, { unit: "J", name: labelOf("joules_per_query").toLowerCase() + " (lower is better)" }, { unit: DATA.quality ? "" : "%", name: qualityName() + (DATA.quality && DATA.quality.better === "lower" ? " (lower is better)" : "") }, legend, place => {
    const run = runs[place];
    return tip(run.name, [["hardware", run.hardware || "–"], [qualityName(), qualityText(qualityOf(run))], ["95 % CI", qualityEnds(run) ? qualityEnds(run).map(qualityText).join(" to ") : "–"],
      [headingOf("joules_per_query").toLowerCase(), withUnit(run.joules_per_query, "J")], ["95 % CI", between(run.intervals.joules_per_query, "J")],
      [headingOf("joules_per_output_token").toLowerCase(), withUnit(run.joules_per_output_token, "J")],
      [headingOf("ipj"), digits(run.ipj)], [run.pareto_optimal ? "Pareto-optimal" : "dominated", ""]]);
  });
}

// ---- layers ----

function componentsOption(model) {
  const names = [...new Set(model.components.map(part => part.name))];
  const phases = [...new Set(model.components.map(part => part.phase))];
  const part = (name, phase) => model.components.find(found => found.name === name && found.phase === phase);
  return {
    ...baseOption(),
    grid: { left: 8, right: 20, top: 34, bottom: 6, containLabel: true },
    legend: { top: 0, left: 0, itemWidth: 10, itemHeight: 10, textStyle: { color: color("ink") } },
    xAxis: unitAxis("J", { type: "value" }, Math.max(...names.map(name => phases.reduce((sum, phase) => sum + (at(part(name, phase), "energy_j") || 0), 0)))),
    yAxis: axis({ type: "category", data: names, inverse: true, splitLine: { show: false } }),
    tooltip: {
      ...baseOption().tooltip, trigger: "item",
      formatter: ({ name, seriesName }) => {
        const found = part(name, seriesName);
        return tip(name + ", " + seriesName, [["energy", withError(found.energy_j, found.plus_minus, "J")],
          ["share", withUnit(found.share, "%")], ["per token", withUnit(found.energy_per_token_j, "J")], ["time", withUnit(found.time_s, "s")]]);
      },
    },
    series: phases.map((phase, i) => ({
      type: "bar", name: phase, stack: "all", barMaxWidth: 22, itemStyle: { color: seriesColor(i) },
      data: names.map(name => at(part(name, phase), "energy_j")),
    })),
  };
}

function layersOption(model) {
  return {
    ...baseOption(),
    grid: { left: 8, right: 14, top: 14, bottom: 24, containLabel: true },
    xAxis: axis({ type: "category", data: model.layers.map(layer => String(layer.index)), name: "layer", nameGap: 24, splitLine: { show: false } }),
    yAxis: unitAxis("J", { type: "value" }, Math.max(...model.layers.map(layer => layer.energy_j || 0))),
    tooltip: {
      ...baseOption().tooltip, trigger: "item",
      formatter: ({ dataIndex }) => {
        const layer = model.layers[dataIndex];
        return tip("layer " + layer.index, [["energy", withError(layer.energy_j, layer.plus_minus, "J")],
          ["share", withUnit(layer.share, "%")], ["time", withUnit(layer.time_s, "s")]]);
      },
    },
    series: [{ type: "bar", barMaxWidth: 26, itemStyle: { color: color("c1") }, data: model.layers.map(layer => layer.energy_j) }],
  };
}

// ---- layers by component ----

// The components of each layer in one phase, in order of first occurrence.
const layerParts = (model, phase) => model.layers.flatMap((layer, row) => (layer.components || []).filter(part => part.phase === phase && known(part.energy_j)).map(part => ({ ...part, row, index: layer.index })));

// Rows are layers, columns components; all phases of a model share one scale.
function heatOption(model, phase, most) {
  const parts = layerParts(model, phase), names = [...new Set(parts.map(part => part.name))];
  return {
    ...baseOption(),
    grid: { left: 24, right: 84, top: 8, bottom: 6, containLabel: true },
    xAxis: axis({ type: "category", data: names, splitLine: { show: false }, labels: { interval: 0, hideOverlap: false, rotate: names.length > 3 ? 30 : 0, overflow: "truncate", width: 90 } }),
    yAxis: axis({ type: "category", data: model.layers.map(layer => String(layer.index)), inverse: true, name: "layer", nameGap: 34, splitLine: { show: false } }),
    visualMap: { min: 0, max: most || 1, right: 0, top: "center", itemHeight: 110, itemWidth: 12, inRange: { color: [color("faint"), color("c1")] }, text: [withUnit(most, "J", 2), "0 J"], textStyle: { color: color("dim"), fontSize: 11 } },
    tooltip: { ...baseOption().tooltip, trigger: "item", formatter: ({ dataIndex }) => tip("layer " + parts[dataIndex].index + ", " + parts[dataIndex].name + ", " + phase,
      [["energy", withError(parts[dataIndex].energy_j, parts[dataIndex].plus_minus, "J")], ["share", withUnit(parts[dataIndex].share, "%")], ["time", withUnit(parts[dataIndex].time_s, "s")]]) },
    series: [{ type: "heatmap", data: parts.map(part => [names.indexOf(part.name), part.row, part.energy_j]), itemStyle: { borderColor: color("panel"), borderWidth: 1 } }],
  };
}

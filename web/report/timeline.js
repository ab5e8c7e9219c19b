// The power of the devices over the run, the requests in flight and, zoomed in, every request.

const REQUESTS_MOST = 2000; // more would be unreadable and slow
const LANE_PIXELS = 9, LANES_PIXELS_LEAST = 54, LANES_PIXELS_MOST = 150;

// The requests of one start, by start time.
function requestsOf(run, start) {
  const queries = queriesOf(run), found = [];
  for (let i = 0; i < queries.count; i++)
    if (known(queries.from_s[i]) && (!known(queries.start[i]) || queries.start[i] === start)) found.push(i);
  found.sort((a, b) => queries.from_s[a] - queries.from_s[b]);
  const from = Float64Array.from(found, i => queries.from_s[i]);
  const longest = found.reduce((most, i) => Math.max(most, queries.latency_s[i] || 0), 0);
  return { queries, rows: Uint32Array.from(found), from, longest };
}

// Index of the first value that is not below `wanted`.
function lowerBound(values, wanted) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) low = middle + 1; else high = middle;
  }
  return low;
}

// Requests in a time range, or null if there are too many to distinguish.
function requestsWithin(requests, begin, end) {
  const first = lowerBound(requests.from, begin - requests.longest), last = lowerBound(requests.from, end);
  return last - first > REQUESTS_MOST ? null : requests.rows.subarray(first, last);
}

function powerSeries(timeline, times) {
  return timeline.power.flatMap((channel, i) => {
    const name = channel.device + (timeline.power.filter(other => other.device === channel.device).length > 1 ? " " + channel.scope : "");
    const [mean, least, largest] = ["mean", "least", "largest"].map(key => unpack(channel[key], timeline.count));
    const pairs = values => Array.from(values, (value, k) => [times[k], Number.isNaN(value) ? null : value]);
    const band = { type: "line", symbol: "none", silent: true, stack: "band" + i, stackStrategy: "all", lineStyle: { opacity: 0 }, xAxisIndex: 0, yAxisIndex: 0 };
    return [
      { ...band, name: name + " least", data: pairs(least) },
      { ...band, name: name + " range", data: pairs(largest.map((value, k) => value - least[k])), areaStyle: { color: seriesColor(i), opacity: 0.18 } },
      { type: "line", name, symbol: "none", data: pairs(mean), lineStyle: { width: 1.4, color: seriesColor(i) }, itemStyle: { color: seriesColor(i) },
        xAxisIndex: 0, yAxisIndex: 0, emphasis: { disabled: true }, power: true },
    ];
  });
}

function requestPairs(queries, row) {
  return [
    ["subject", subjectOf(queries, row) || "–"], ["answer", verdictOf(queries, row)],
    ["energy", withError(queries.joules[row], queries.plus_minus[row], "J")],
    ["latency", withUnit(queries.latency_s[row], "s")], ["time to first token", withUnit(queries.ttft_s[row], "s")],
    ["tokens", withUnit(queries.input_tokens[row], "") + " in, " + withUnit(queries.output_tokens[row], "") + " out"],
  ];
}

function timelineView(run) {
  const state = { place: 0, window: null, hovered: null, chart: null, requests: null };
  const timelines = run.timelines.filter(timeline => timeline.power.length || run.queries.rows);
  const readout = make("p", { class: "note", role: "status" });
  const timeline = () => timelines[state.place];
  const times = () => Float64Array.from({ length: timeline().count }, (_, i) => timeline().from + (i + 0.5) * timeline().step);
  const end = () => timeline().from + timeline().count * timeline().step;

  const lanes = () => {
    const { queries, rows } = state.requests;
    let most = 0;
    for (const row of rows) most = Math.max(most, queries.lane[row] || 0);
    return most + 1;
  };

  const renderRequest = (params, api) => {
    const { queries } = state.requests, row = api.value(3), lane = api.value(1);
    const [x0, y] = api.coord([api.value(0), lane]), [x1] = api.coord([api.value(2), lane]);
    const [xFirst] = api.coord([api.value(0) + (queries.ttft_s[row] || 0), lane]);
    const height = Math.min(16, Math.max(2, Math.abs(api.size([0, 1])[1]) - 1.5));
    const box = { x: params.coordSys.x, y: params.coordSys.y, width: params.coordSys.width, height: params.coordSys.height };
    const rect = (from, to, fill, opacity) => {
      const shape = echarts.graphic.clipRectByRect({ x: from, y: y - height / 2, width: Math.max(1, to - from), height }, box);
      return shape && { type: "rect", shape, style: { fill, opacity } };
    };
    const fill = verdictOf(queries, row) === "failed" ? color("c5") : color("c3");
    return { type: "group", children: [rect(x0, x1, fill, 0.85), rect(x0, xFirst, color("c4"), 0.95)].filter(Boolean) };
  };

  const requestData = () => {
    const { queries } = state.requests, [begin, finish] = state.window || [timeline().from, end()];
    const found = requestsWithin(state.requests, begin, finish);
    readout.textContent = !state.requests.rows.length ? ""
      : found ? plural(found.length, "request") + " in view: violet until the first token, then green; red if failed. Hover over one for its figures."
        : "Zoom in to see single requests; the band shows the number in flight.";
    return found ? Array.from(found, row => [queries.from_s[row], queries.lane[row], queries.from_s[row] + queries.latency_s[row], row]) : [];
  };

  const axisTip = params => {
    const points = params.filter(point => !/ (least|range)$/.test(point.seriesName) && point.seriesName !== "requests");
    const pairs = points.map(point => point.seriesName === "requests in flight"
      ? [point.seriesName, digits(point.value[1], 3)] : [point.seriesName, withUnit(point.value[1], "W")]);
    const element = tip(withUnit(params[0].axisValue, "s"), pairs);
    if (state.hovered !== null)
      element.append(make("hr"), tip(keyOf(state.requests.queries, state.hovered), requestPairs(state.requests.queries, state.hovered)));
    return element;
  };

  const option = () => {
    state.requests = requestsOf(run, timeline().start);
    const moments = times(), inFlight = unpack(timeline().in_flight, timeline().count);
    const laneHeight = state.requests.rows.length ? Math.min(LANES_PIXELS_MOST, Math.max(LANES_PIXELS_LEAST, lanes() * LANE_PIXELS)) : 0;
    const span = { min: timeline().from, max: end() };
    const timeAxis = (gridIndex, labels) => unitAxis("s", {
      type: "value", gridIndex, ...span, splitLine: { show: false },
      labels: { show: labels, showMinLabel: false, showMaxLabel: false, formatter: value => digits(value, 4).replace(/\.0+$/, "") + " s" },
      axisPointer: { show: true, label: { show: false } },
    });
    const zoom = { xAxisIndex: [0, 1, 2], filterMode: "none", startValue: at(state.window, 0) ?? undefined, endValue: at(state.window, 1) ?? undefined };
    return {
      ...baseOption(),
      legend: { top: 0, left: 0, icon: "roundRect", itemWidth: 14, itemHeight: 5, textStyle: { color: color("ink") }, data: powerSeries(timeline(), []).filter(s => s.power).map(s => s.name) },
      grid: [
        { left: 58, right: 14, top: 34, height: 200 },
        { left: 58, right: 14, top: 262, height: 44 },
        { left: 58, right: 14, top: 318, height: laneHeight },
      ],
      xAxis: [timeAxis(0, false), timeAxis(1, !laneHeight), timeAxis(2, laneHeight > 0)],
      yAxis: [
        unitAxis("W", { type: "value", gridIndex: 0, splitNumber: 4 }),
        axis({ type: "value", gridIndex: 1, splitNumber: 2, minInterval: 1, name: "in flight", nameGap: 38 }),
        axis({ type: "value", gridIndex: 2, min: -0.6, max: Math.max(0.6, laneHeight ? lanes() - 0.4 : 1), inverse: true, name: "requests", nameGap: 38, labels: { show: false },
          axisLine: { show: false }, splitLine: { show: false } }),
      ],
      axisPointer: { link: [{ xAxisIndex: "all" }], lineStyle: { color: color("dim") } },
      tooltip: { ...baseOption().tooltip, trigger: "axis", formatter: axisTip },
      dataZoom: [
        { type: "inside", ...zoom, zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, preventDefaultMouseMove: false },
        { type: "slider", ...zoom, bottom: 6, height: 22, left: 58, right: 14, borderColor: color("line"), fillerColor: color("c1") + "22",
          handleStyle: { color: color("panel"), borderColor: color("dim") }, moveHandleSize: 4, brushSelect: false, showDetail: false,
          dataBackground: { lineStyle: { color: color("line") }, areaStyle: { color: color("faint") } },
          selectedDataBackground: { lineStyle: { color: color("c1") }, areaStyle: { color: color("c1"), opacity: 0.15 } } },
      ],
      series: [
        ...powerSeries(timeline(), moments),
        { type: "line", name: "requests in flight", xAxisIndex: 1, yAxisIndex: 1, symbol: "none", step: "middle", data: Array.from(inFlight, (value, i) => [moments[i], value]),
          lineStyle: { width: 1, color: color("c3") }, itemStyle: { color: color("c3") }, areaStyle: { color: color("c3"), opacity: 0.25 }, emphasis: { disabled: true } },
        { id: "requests", type: "custom", name: "requests", xAxisIndex: 2, yAxisIndex: 2, renderItem: renderRequest, encode: { x: [0, 2], y: 1 },
          data: requestData(), clip: true },
      ],
    };
  };

  const zoomTo = (begin, finish) => {
    const from = timeline().from, to = end(), width = Math.min(to - from, Math.max(finish - begin, timeline().step / 4));
    begin = Math.min(Math.max(begin, from), to - width);
    state.chart?.dispatchAction({ type: "dataZoom", dataZoomIndex: 0, startValue: begin, endValue: begin + width });
  };
  const move = (zoom, shift) => {
    const [begin, finish] = state.window || [timeline().from, end()], middle = (begin + finish) / 2 + shift * (finish - begin), half = (finish - begin) * zoom / 2;
    zoomTo(middle - half, middle + half);
  };
  const KEYS = { "+": [0.5, 0], "=": [0.5, 0], "-": [2, 0], ArrowLeft: [1, -0.25], ArrowRight: [1, 0.25] };

  const ready = chart => {
    state.chart = chart;
    chart.on("datazoom", () => {
      const { startValue, endValue } = chart.getOption().dataZoom[0];
      state.window = [startValue, endValue];
      element.dataset.from = startValue;
      element.dataset.to = endValue;
      chart.setOption({ series: [{ id: "requests", data: requestData() }] });
    });
    chart.on("mouseover", { seriesName: "requests" }, event => { state.hovered = event.value[3]; });
    chart.on("mouseout", { seriesName: "requests" }, () => { state.hovered = null; });
    chart.on("click", { seriesName: "requests" }, event => {
      const row = event.value[3], { queries } = state.requests;
      readout.textContent = keyOf(queries, row) + ": " + requestPairs(queries, row).map(pair => pair.join(" ")).join(", ");
    });
  };
  const element = chartElement("Power and requests over time; arrow keys move, plus and minus zoom, 0 shows all", option, { ready });
  element.id = "timeline-chart";
  element.tabIndex = 0;
  element.setAttribute("role", "application");
  element.style.height = 318 + Math.min(LANES_PIXELS_MOST, Math.max(LANES_PIXELS_LEAST, timelineLanes(run) * LANE_PIXELS)) + 66 + "px";
  element.addEventListener("keydown", event => {
    if (event.key === "0") zoomTo(timeline().from, end());
    else if (KEYS[event.key] && !event.ctrlKey && !event.metaKey) move(...KEYS[event.key]);
    else return;
    event.preventDefault();
  });

  const button = (label, name, act) => make("button", { type: "button", "aria-label": name, title: name, click: act }, label);
  const controls = make("div", { class: "controls" },
    button("+", "Zoom in", () => move(0.5, 0)), button("−", "Zoom out", () => move(2, 0)),
    button("←", "Earlier", () => move(1, -0.25)), button("→", "Later", () => move(1, 0.25)),
    button("All", "Show all", () => zoomTo(timeline().from, end())));
  if (timelines.length > 1)
    controls.append(make("select", {
      "aria-label": "Start of the run",
      change: event => { state.place = Number(event.target.value); state.window = null; redrawChart(element); },
    }, timelines.map((found, i) => make("option", { value: i }, "Start " + found.start))));
  const missing = timelines.map(found => found.missing).find(Boolean);
  return make("div", {}, missing ? make("p", { class: "alert" }, "No power over time: " + missing) : null, controls, element, readout);
}

function timelineLanes(run) {
  const { lane, count } = queriesOf(run);
  let most = 0;
  for (let i = 0; i < count; i++) if (lane[i] > most) most = lane[i];
  return most + 1;
}

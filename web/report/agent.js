// Queries of an agent: energy and time of inferences, tools and gaps, and an icicle chart of the spans of one query, by time or by energy.

const SPAN_COLORS = { agent: "c6", turn: "c6", lm_inference: "c1", submodel_call: "c1", prefill: "c4", decode: "c3", tool_call: "c2" };
const SPAN_WORDS = { agent: "agent", turn: "turn", lm_inference: "inference", submodel_call: "model call of a tool", prefill: "prefill", decode: "decode", tool_call: "tool", gap: "gaps" };
const ROW_PIXELS = 26;

const spanLabel = span => span.type === "turn" && known(span.turn) ? "turn " + (span.turn + 1)
  : span.type === "tool_call" ? span.name || "tool" : (SPAN_WORDS[span.type] || span.type) + (span.name && span.type === "agent" ? " " + span.name : "");

// Places a span below its parent, in the first row without an overlap: concurrent tools are stacked.
function rowsByTime(spans) {
  const rows = [], ends = [];
  for (const [i, span] of spans.entries()) {
    let row = i ? rows[span.parent] + 1 : 0;
    while ((ends[row] || []).some(([from, to]) => from < span.to_s && span.from_s < to)) row++;
    (ends[row] ||= []).push([span.from_s, span.to_s]);
    rows.push(row);
  }
  return spans.map((span, i) => ({ span, row: rows[i], from: span.from_s, to: span.to_s }));
}

// Widths are joules, in sequence inside the parent; the rest of the parent is its own energy.
function rowsByEnergy(spans) {
  const places = [], used = [];
  for (const [i, span] of spans.entries()) {
    const width = Math.max(0, span.joules || 0), above = i ? places[span.parent] : null;
    const from = above ? above.from + used[span.parent] : 0;
    places.push({ span, row: above ? above.row + 1 : 0, from, to: above ? Math.min(from + width, above.to) : width });
    used.push(0);
    if (above) used[span.parent] += width;
  }
  return places;
}

const spanTip = span => tip(spanLabel(span) + (span.type === "tool_call" ? " (tool)" : ""), [
  ["energy", withError(span.joules, span.plus_minus, "J")], ["of it idle", withUnit(span.idle_joules, "J")], ["of it gaps", withError(span.own_joules, span.own_plus_minus, "J")],
  ["GPU", withUnit(span.gpu_joules, "J")], ["CPU", withUnit(span.cpu_joules, "J")],
  ["time", withUnit(span.to_s - span.from_s, "s")], ["mean power", withUnit(span.to_s > span.from_s ? span.joules / (span.to_s - span.from_s) : NaN, "W")],
  ["tokens", known(span.input_tokens) || known(span.output_tokens) ? withUnit(span.input_tokens, "") + " in, " + withUnit(span.output_tokens, "") + " out" : "–"],
  ...(span.error ? [["error", span.error]] : [])].filter(([, text]) => text !== "–"));

function icicleOption(query, byEnergy) {
  const places = byEnergy ? rowsByEnergy(query.spans) : rowsByTime(query.spans);
  const unit = byEnergy ? "J" : "s", last = Math.max(...places.map(place => place.to)), depth = Math.max(...places.map(place => place.row)) + 1;
  const render = (params, api) => {
    const { span, row, from, to } = places[params.dataIndex];
    const [x0, y] = api.coord([from, row]), [x1] = api.coord([to, row]);
    const box = { x: params.coordSys.x, y: params.coordSys.y, width: params.coordSys.width, height: params.coordSys.height };
    const shape = echarts.graphic.clipRectByRect({ x: x0, y: y - ROW_PIXELS / 2 + 1, width: Math.max(1, x1 - x0 - 1), height: ROW_PIXELS - 2 }, box);
    if (!shape) return null;
    const label = spanLabel(span), fits = shape.width > 24;
    return { type: "rect", shape: { ...shape, r: 2 }, style: { fill: color(SPAN_COLORS[span.type] || "c6"), opacity: ["agent", "turn"].includes(span.type) ? 0.45 : 0.9, stroke: span.error ? color("c5") : null, lineWidth: 2 },
      textContent: fits ? { style: { text: label, fill: color(["agent", "turn"].includes(span.type) ? "ink" : "panel"), width: shape.width - 8, overflow: "truncate", ellipsis: "…", fontSize: 11 } } : null,
      textConfig: fits ? { position: "inside" } : null };
  };
  return {
    ...baseOption(),
    grid: { left: 8, right: 20, top: 6, height: depth * ROW_PIXELS, containLabel: false },
    xAxis: unitAxis(unit, { type: "value", min: 0, max: last || 1, name: byEnergy ? "energy" : "time since the query was sent", axisLine: { onZero: false, lineStyle: { color: color("line") } }, splitLine: { show: false }, labels: { showMaxLabel: false } }, last),
    yAxis: axis({ type: "value", min: -0.5, max: depth - 0.5, inverse: true, labels: { show: false }, axisLine: { show: false }, splitLine: { show: false } }),
    tooltip: { ...baseOption().tooltip, trigger: "item", formatter: ({ dataIndex }) => spanTip(places[dataIndex].span) },
    dataZoom: [{ type: "inside", xAxisIndex: 0, filterMode: "none", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, preventDefaultMouseMove: false }],
    series: [{ type: "custom", renderItem: render, encode: { x: [0, 1], y: 2 }, data: places.map(({ from, to, row }) => [from, to, row]), clip: true }],
  };
}

const icicleRows = query => Math.max(...rowsByTime(query.spans).map(place => place.row)) + 1;

function icicleView(agent) {
  const state = { place: 0, byEnergy: false };
  const query = () => agent.queries[state.place];
  const note = make("p", { class: "note", role: "status", id: "icicle-note" });
  const element = chartElement("Spans of a query", () => icicleOption(query(), state.byEnergy));
  element.id = "icicle";
  const draw = () => {
    element.style.height = icicleRows(query()) * ROW_PIXELS + 56 + "px";
    note.textContent = query().key + ": " + withError(query().joules, query().plus_minus, "J") + " in " + withUnit(query().seconds, "s") + ", " + plural(query().turns || 0, "turn") + ", " + plural(query().tool_calls || 0, "tool call")
      + (query().problems ? "; events: " + query().problems : "") + (query().left_out ? "; " + plural(query().left_out, "span") + " not shown" : "") + ".";
    redrawChart(element, true);
  };
  const legend = make("ul", { class: "keys" }, ["lm_inference", "prefill", "decode", "tool_call", "turn"].map(type =>
    make("li", {}, make("i", { style: "background:var(--" + SPAN_COLORS[type] + ")" }), type === "turn" ? "agent, turn" : SPAN_WORDS[type])));
  const controls = make("div", { class: "controls" },
    make("select", { id: "icicle-query", "aria-label": "Query", change: event => { state.place = Number(event.target.value); draw(); } },
      agent.queries.map((found, i) => make("option", { value: i }, found.key + ": " + withUnit(found.joules, "J")))),
    make("select", { id: "icicle-by", "aria-label": "Width of a span", change: event => { state.byEnergy = event.target.value === "energy"; draw(); } },
      make("option", { value: "time" }, "by time"), make("option", { value: "energy" }, "by energy")));
  draw();
  return make("div", {}, make("h3", { class: "spaced" }, "Spans of a query"), controls, note, element, legend);
}

const PART_COLUMNS = [{ key: "count", label: "Count", unit: "" }, figureColumn("joules", { show: row => withError(row.joules, row.joules_error, "J") }), { key: "share", label: "Share", unit: "%" },
  { key: "joules_each", label: "Energy each", unit: "J", show: row => withError(row.joules_each, row.joules_each_error, "J") }, { key: "idle_joules", label: "Of it idle", unit: "J" }, { key: "seconds_each", label: "Time each", unit: "s" }, { key: "errors", label: "Errors", unit: "" }];

const TURNS_MOST = 50;

const perQuery = (value, word) => withUnit(value, "") + " " + word + (value === 1 ? "" : "s");

function agentSection(run) {
  const found = at(run.analyses, "agent");
  if (!run.agent || !found || !found.data.turns) return null;
  const { summary, data, warnings } = found;
  const table = (title, key, label, rows) => rows.length ? make("div", {}, make("h3", {}, title), smallTable(title, [{ key, label, text: true, of: row => String(key === "turn" ? row.turn + 1 : (SPAN_WORDS[row[key]] || row[key]) + (key === "kind" && ["prefill", "decode"].includes(row[key]) ? " (of inference)" : "")) }, ...PART_COLUMNS], rows)) : null;
  return section("agent", "Agent", sentence([withError(summary.joules_per_query, summary.joules_per_query_error, "J") + " per query", perQuery(summary.turns_per_query, "turn"), perQuery(summary.tool_calls_per_query, "tool call")].join(", ")
    + (known(summary.inference_share) ? "; inferences " + withUnit(summary.inference_share, "%") + ", tools " + withUnit(summary.tool_share ?? 0, "%") + ", gaps " + withUnit(summary.gap_share, "%") + " of the energy" : "")),
    make("div", { class: "tables" }, table("By kind", "kind", "Kind", data.kinds), table("By tool", "tool", "Tool", data.tools), table("By turn", "turn", "Turn", data.turns.slice(0, TURNS_MOST))),
    data.turns.length > TURNS_MOST ? make("p", { class: "note" }, "The first " + TURNS_MOST + " of " + plural(data.turns.length, "turn") + "; analysis/agent.json has all.") : null,
    run.agent.queries.length ? icicleView(run.agent) : null,
    run.agent.queries.length && run.agent.queries.length < run.agent.count ? make("p", { class: "note after" }, "The " + plural(run.agent.queries.length, "query", "queries") + " of " + run.agent.count.toLocaleString("en") + " that took the most energy.") : null,
    warnings.length ? make("ul", { class: "note" }, warnings.map(text => make("li", {}, sentence(text)))) : null);
}

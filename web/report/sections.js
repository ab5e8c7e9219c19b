// The page: its sections, in order, for the run that is chosen.

let chosen = 0;

function section(id, title, note, ...content) {
  return make("section", { id, "aria-labelledby": id + "-title" },
    make("h2", { id: id + "-title" }, title), note ? make("p", { class: "note" }, note) : null, ...content);
}

// ---- the top ----

function topFacts(run) {
  const summary = run.summary || {}, when = at(summary, "ipw", "started_at") || at(summary, "generated_at");
  const fact = (label, value) => value ? make("span", {}, label + " ", make("b", {}, value)) : null;
  return make("div", { class: "facts" },
    DATA.runs.length > 1 ? fact("on", run.hardware) : null, fact("dataset", run.dataset),
    make("span", {}, make("b", {}, plural(run.rows, "query", "queries")), run.failed ? ", " + run.failed.toLocaleString("en") + " failed" : ""),
    fact("client", at(summary, "profiler_config", "client_id")),
    fact("measured", when ? new Date(when * 1000).toISOString().slice(0, 16).replace("T", " ") + " UTC" : ""));
}

function drawTop() {
  const run = DATA.runs[chosen];
  const label = () => theme.isDark() ? "Light" : "Dark";
  const button = make("button", { type: "button", id: "theme", "aria-label": "Switch between light and dark", click: () => theme.toggle() }, label());
  theme.listeners[0] = () => { button.textContent = label(); };
  document.getElementById("top").replaceChildren(
    make("div", { class: "masthead" },
      make("div", {}, make("p", { class: "eyebrow" }, "Intelligence per watt"), make("h1", {}, DATA.title)), button),
    DATA.runs.length === 1 ? topFacts(run) : DATA.layers.length ? make("div", { class: "facts" }, "With the layers of " + plural(DATA.layers.length, "model")) : make("div"));
}

// ---- what was measured, and how well ----

function warningsOf(run) {
  const analyses = Object.values(run.analyses);
  const checks = at(run.analyses, "quality", "data", "checks") || [];
  return [
    ...run.notes,
    ...checks.filter(check => check.verdict === "warning" || check.verdict === "bad").map(check => check.check.replaceAll("_", " ") + ": " + check.detail),
    ...analyses.flatMap(result => result.warnings || []),
  ];
}

function deviceTable(run) {
  const devices = at(run.summary, "ipw", "devices") || [];
  if (!devices.length) return null;
  return smallTable("Devices", [
    { key: "id", label: "Device", text: true },
    { label: "Energy", unit: "J", of: device => at(device, "energy", "joules"),
      show: device => withError(at(device, "energy", "joules"), at(device, "energy", "plus_minus"), "J") },
    { label: "Method", text: true, of: device => at(device, "energy", "method") || at(device, "energy", "note") },
    { label: "Source", text: true, of: device => at(device, "energy", "source") },
    { label: "Covered", unit: "%", of: device => at(device, "energy", "coverage") },
    { label: "Updates", unit: "", of: device => at(device, "energy", "updates") },
    { label: "Mean", unit: "W", of: device => device.power_mean_w },
    { label: "Largest", unit: "W", of: device => device.power_max_w },
    { label: "Idle", unit: "W", of: device => at((at(run.summary, "ipw", "idle", "devices") || []).find(idle => idle.id === device.id), "power_w") },
    { label: "Cross-check", unit: "%", of: device => device.cross_check_residual },
    { label: "In the total", text: true, of: device => device.in_total ? "yes" : "no" },
  ], devices);
}

const checksOf = run => at(run.analyses, "quality", "data", "checks") || [];

const badge = (kind, text) => make("span", { class: "badge " + kind }, text);

// How the energy is known: in a word of warning or praise, in words, and in few.
function methodOf(run) {
  const method = at(run.summary, "ipw", "energy", "method") || at(run.analyses, "efficiency", "summary", "method");
  const untold = !method && known(at(run.analyses, "efficiency", "summary", "joules"));
  return untold ? ["warning", "how the energy was measured is not told", "not told how"] : !method ? ["bad", "energy not measured", "not measured"]
    : method === "estimated" ? ["warning", "estimated, not measured", "estimated"] : ["good", "measured by " + method, "by " + method];
}

// The same in a line, with what it rests on.
function evidence(run) {
  const energy = at(run.summary, "ipw", "energy") || {}, checks = checksOf(run);
  return make("p", { class: "evidence" }, badge(...methodOf(run).slice(0, 2)),
    known(energy.coverage) ? badge(energy.coverage >= 0.9 ? "good" : "warning", withUnit(energy.coverage, "%") + " coverage") : null,
    checks.length ? badge("", ["good", "warning", "unknown"].map(kind => [kind, checks.filter(check => check.verdict === kind).length])
      .filter(([, count]) => count).map(([kind, count]) => count + " " + kind).join(", ") + " of " + checks.length + " checks") : null,
    energy.source ? make("span", { class: "mono dim" }, energy.source) : null);
}

function qualitySection(run) {
  const checks = checksOf(run), devices = deviceTable(run);
  if (!devices && !checks.length) return null;
  return section("quality", "What was measured, and how well", null,
    devices,
    checks.length ? make("details", { class: "printed" }, make("summary", {}, "All " + checks.length + " checks"), smallTable("Checks", [
      { key: "check", label: "Check", text: true, of: check => check.check.replaceAll("_", " ") },
      { label: "Verdict", text: true, of: check => make("span", { class: "badge " + check.verdict }, check.verdict), fixed: true },
      { key: "detail", label: "What was found", text: true },
    ], checks, { filter: false })) : null);
}

// ---- what was predicted ----

// An estimate beside what came out: the same figures, as far as both have them.
const PREDICTED = [["joules_per_output_token", "J"], ["joules_per_query", "J"], ["busy_watts", "W"], ["latency_s", "s"],
  ["time_to_first_token_s", "s"], ["output_tokens_per_s", ""]];

function predictedSection(run) {
  const said = run.predicted;
  if (!said) return null;
  if (said.note) return section("predicted", "Predicted", said.note);
  const measured = Object.fromEntries(run.headline.map(figure => [figure.key, figure]));
  const rows = PREDICTED.filter(([key]) => known(said[key]) && measured[key])
    .map(([key, unit]) => ({ key, unit, label: measured[key].label, found: measured[key].value, said: said[key], error: said[key + "_plus_minus"] }));
  return section("predicted", "Predicted",
    "By ipw estimate, for a request of " + said.prompt_tokens + " prompt and " + said.output_tokens + " output tokens in a batch of " + said.batch +
    " on " + said.hardware + " (" + said.precision + ", " + said.confidence + "). A run with other lengths or another batch costs something else; ipw estimate validate takes its own.",
    smallTable("Predicted and measured", [
      { key: "label", label: "Figure", text: true },
      { key: "said", label: "Predicted", unit: "", show: row => row.error > 0 ? withError(row.said, row.error, row.unit) : withUnit(row.said, row.unit) },
      { key: "found", label: "Measured", unit: "", show: row => withUnit(row.found, row.unit) },
      { label: "Predicted over measured", unit: "", of: row => known(row.found) && row.found > 0 ? row.said / row.found : null },
    ], rows, { filter: false }));
}

// ---- headline figures ----

function figure(item, i) {
  const [value, error] = item.text === null ? ["unknown"] : item.text.split(" ± ");
  return make("div", { class: "figure" + (i < 2 ? " first" : ""), "data-key": item.key, "data-value": item.value },
    make("dt", {}, item.label),
    make("dd", {},
      make("div", { class: "value" + (item.text === null ? " unknown" : "") }, value,
        error ? make("span", { class: "error" }, " ± " + error) : null),
      item.note ? make("div", { class: "about" }, item.note) : null));
}

// Whatever makes the figures doubtful stands before them.
function headlineSection(run) {
  const warnings = warningsOf(run);
  return section("figures", "Figures", null,
    warnings.length ? make("div", { class: "alert", id: "warnings" }, make("strong", {}, plural(warnings.length, "thing") + " to know before reading on"),
      make("ul", {}, warnings.map(text => make("li", {}, text)))) : null,
    evidence(run),
    make("dl", { class: "figures" }, run.headline.map(figure)),
    make("p", { class: "note after" }, "± is one standard uncertainty; beside energy and power it is that of the sensors. 95 % intervals show the sampling error only, not that of the sensors."
      + (DATA.comparison && !DATA.comparison.missing ? " In the comparison ± is larger: it also holds how much one query differs from another." : "")));
}

// ---- where the energy went ----

const SHARE_COLOURS = { prefill: "c4", decode: "c3", queries: "c1", failed: "c5", idle: "c6", unattributed: "c2" };

function sharesSection(run) {
  if (!run.shares.length) return null;
  const joules = run.summary.ipw.joules;
  const paint = share => "background:var(--" + SHARE_COLOURS[share.key] + ")";
  return section("shares", "Where the energy went", "Every joule of the machine during the run goes to one request, to the time between requests, or to nobody."
    + (known(joules.queries_idle_share) ? " Of the queries' " + withUnit(joules.queries, "J") + ", " + withUnit(joules.queries_idle_share, "J") + " would have been spent at rest too." : "")
    + (known(joules.judge) ? " Judging took " + withUnit(joules.judge, "J") + " more." : ""),
    make("div", { class: "shares", role: "img", "aria-label": run.shares.map(share => share.label + " " + withUnit(share.joules, "J")).join(", ") },
      run.shares.map(share => make("span", { style: "flex:" + share.share + " 1 0;" + paint(share) }))),
    make("ul", { class: "keys" }, run.shares.map(share => make("li", { "data-share": share.key, "data-value": share.joules }, make("i", { style: paint(share) }),
      share.label + " " + withUnit(share.joules, "J") + " (" + withUnit(share.share, "%") + ")"))));
}

// ---- time, distributions, fits ----

function timelineSection(run) {
  if (!run.timelines.some(timeline => timeline.power.length) && !known(queriesOf(run).from_s.find(known))) return null;
  return section("timeline", "Power over time", "Mean power of each device with its least and largest, out of the raw samples. Time 0 is the first query. Drag or use the keys to move; Ctrl and the wheel, two fingers or + and − zoom.",
    timelineView(run));
}

function distributionSection(run) {
  if (!run.distributions.length) return null;
  return section("distributions", "Distributions", "Completed queries. Dashed lines are the median and the 95th percentile; a grey bar holds what lies beyond.",
    make("div", { class: "grid" }, run.distributions.map(found => make("div", { class: "card" },
      make("h3", {}, found.label),
      make("p", { class: "note" }, "median " + withUnit(found.spread.p50, found.unit) + ", p95 " + withUnit(found.spread.p95, found.unit) + ", largest " + withUnit(found.spread.max, found.unit)),
      chartElement(found.label + ", histogram", () => histogramOption(found), { size: "small" })))));
}

function fitText(fit, result) {
  return withError(result.slope, result.slope_error, fit.unit) + " a token and " + withUnit(result.intercept, fit.unit) + " to begin with; r² " + digits(result.r2, 3) + " over " + plural(result.count, "query", "queries");
}

function fitSection(run) {
  const queries = queriesOf(run);
  const cards = FITS.map(fit => [fit, at(run.analyses, "regression", "data", fit.group, fit.key)])
    .filter(([, result]) => result && known(result.slope))
    .map(([fit, result]) => [fit, result, fitPoints(queries, fit)]).filter(([, , points]) => points.length > 1);
  if (!cards.length) return null;
  return section("fits", "Fits", "Least squares over all completed queries; of many, evenly picked ones are drawn.",
    make("div", { class: "grid wide" }, cards.map(([fit, result, points]) => make("div", { class: "card", "data-fit": fit.key, "data-slope": result.slope },
      make("h3", {}, fit.title), make("p", { class: "note" }, fitText(fit, result)),
      chartElement(fit.title, () => fitOption(queries, fit, result, points), { size: "small" })))));
}

// ---- groups ----

// A figure of some of the queries says of how many.
const ofSome = (key, unit) => row => withUnit(row[key], unit) + (known(row[key]) && row[key + "_queries"] < row.queries ? " (" + row[key + "_queries"] + " of " + row.queries + ")" : "");

const GROUP_COLUMNS = [
  { key: "queries", label: "Queries", unit: "" }, { key: "accuracy", label: "Accuracy", unit: "%" },
  { key: "joules_per_query", label: "Per query", unit: "J", show: ofSome("joules_per_query", "J") },
  { key: "joules_per_output_token", label: "Per output token", unit: "J", show: ofSome("joules_per_output_token", "J") },
  { key: "watts", label: "Query power", unit: "W" }, { key: "latency_s", label: "Latency", unit: "s" },
  { key: "time_to_first_token_s", label: "First token", unit: "s", show: ofSome("time_to_first_token_s", "s") },
  { key: "input_tokens", label: "Prompt", unit: "" }, { key: "output_tokens", label: "Output", unit: "" },
];

// What the analyses say of the same groups, side by side.
function joinGroups(run, sources) {
  const groups = new Map();
  for (const [analysis, list, name] of sources)
    for (const { [name]: group, ...figures } of at(run.analyses, analysis, "data", list) || [])
      groups.set(group, { ...figures, ...groups.get(group), name: group });
  return [...groups.values()];
}

function groupSection(run) {
  const tables = [
    ["By subject", "Subject", [["efficiency", "by_subject", "subject"], ["accuracy", "by_subject", "subject"], ["latency", "by_subject", "subject"]]],
    ["By output length", "Output tokens", [["efficiency", "by_output_tokens", "length"], ["accuracy", "by_output_tokens", "length"]]],
    ["By prompt length", "Prompt tokens", [["efficiency", "by_input_tokens", "length"], ["accuracy", "by_input_tokens", "length"], ["latency", "by_input_tokens", "input_tokens"]]],
  ].map(([title, label, sources]) => [title, label, joinGroups(run, sources)]).filter(([, , rows]) => rows.length);
  if (!tables.length) return null;
  return section("groups", "By subject and by length", "Means of completed queries; energy per token is of all their joules over all their tokens. Query power is a query's joules over its own time: of requests that ran at once, each has its share of the machine's.",
    make("div", { class: "tables" }, tables.map(([title, label, rows]) => make("div", {}, make("h3", {}, title),
      smallTable(title, [{ key: "name", label, text: true, wide: true }, ...GROUP_COLUMNS], rows, { filter: rows.length > 1 })))));
}

function querySection(run) {
  const { rows, listed } = run.queries;
  return section("queries", "Every query", (listed < rows ? listed.toLocaleString("en") + " of " + rows.toLocaleString("en") + " queries, evenly picked. " : "")
    + "Figures to four digits; the records have all of them."
    + (run.excerpts.length ? " " + (run.excerpts.length < listed ? "Of " + run.excerpts.length.toLocaleString("en") + ", evenly picked, the underlined name" : "The name")
      + " opens what was asked and answered." : ""), queryTable(run));
}

// ---- several runs ----

// What makes a run's figures doubtful, by run; what is true of all stands once.
function acrossWarnings() {
  const lists = DATA.runs.map(run => [...new Set(warningsOf(run))]);
  const common = lists[0].filter(text => lists.every(list => list.includes(text)));
  const own = lists.map(list => list.filter(text => !common.includes(text)));
  const count = DATA.across.warnings.length + common.length + own.flat().length;
  if (!count) return null;
  return make("div", { class: "alert", id: "across-warnings" }, make("strong", {}, plural(count, "thing") + " to know before reading on"),
    make("ul", {}, DATA.across.warnings.map(text => make("li", {}, text)), common.map(text => make("li", {}, make("b", {}, "all runs: "), text)),
      own.map((list, i) => list.length ? make("li", {}, make("b", {}, runName(DATA.runs[i]) + ": "), list.join("; ")) : null)));
}

// How the energies are known: each way once, with how many runs it is of.
function acrossEvidence() {
  const ways = new Map();
  for (const [kind, text] of DATA.runs.map(methodOf)) ways.set(text, [kind, (ways.get(text) || [kind, 0])[1] + 1]);
  return make("p", { class: "evidence" }, [...ways].map(([text, [kind, count]]) =>
    badge(kind, (ways.size > 1 ? count + " of " + DATA.runs.length + " runs " : "") + text)));
}

const runName = run => run.model + (new Set(DATA.runs.map(other => other.hardware)).size > 1 && run.hardware ? " on " + run.hardware : "");

// A headline figure of a run, as it stands under Figures: with its ±, and with its interval where that is all it has.
function acrossFigure(run, key) {
  const found = run.headline.find(item => item.key === key);
  const interval = key === "accuracy" && run.intervals.accuracy;
  return !found || found.text === null ? "–" : found.text + (interval ? " (" + interval.map(end => (100 * end).toFixed(1)).join(" to ") + ")" : "");
}

function acrossSection() {
  if (!DATA.across) return null;
  const runs = DATA.across.data.runs.map((run, i) => ({ ...run, intervals: DATA.runs[i].intervals })), on = DATA.frontier;
  const choose = i => make("button", { type: "button", class: "chooser", title: "Show this run below", click: () => { chosen = i; drawRun(); document.getElementById("one").scrollIntoView(); } }, runs[i].model);
  const rows = runs.map((run, i) => ({ ...run, i, on: on[i] ? "yes" : "" }));
  const differs = key => new Set(runs.map(run => run[key])).size > 1; // what is the same everywhere needs no column
  const headline = (key, label, other = key) => ({ label, of: run => run[other], show: run => acrossFigure(DATA.runs[run.i], key) });
  const drawn = runs.filter(run => known(run.accuracy) && known(run.joules_per_query)).length > 1;
  return section("across", "Side by side", null,
    acrossWarnings(), acrossEvidence(),
    drawn ? chartElement("Accuracy against energy per query", chart => frontierOption(runs, on, chart), { size: runs.length > 8 ? "tall" : "" }) : null,
    make("p", { class: "note after" }, "On the frontier are the runs that no other beats: none is as accurate for as little energy, and better in one of the two."
      + (drawn ? " Bars are 95 % intervals, of other queries of the same kind too." : "") + " ± and the interval of accuracy are those under Figures."),
    smallTable("Runs", [
      { key: "model", label: "Model", text: true, wide: true, view: run => choose(run.i) },
      ...[["hardware", "On"], ["dataset", "Dataset"]].filter(([key]) => differs(key)).map(([key, label]) => ({ key, label, text: true })),
      { key: "on", label: "Frontier", text: true },
      { label: "Energy is", text: true, of: run => methodOf(DATA.runs[run.i])[2], view: run => badge(methodOf(DATA.runs[run.i])[0], methodOf(DATA.runs[run.i])[2]) },
      headline("accuracy", "Accuracy (95 %)"), headline("joules_per_query", "Per query"), headline("joules_per_output_token", "Per output token"), headline("ipj", "IPJ"),
      headline("busy_watts", "Power while busy", "watts"), { key: "output_tokens_per_s", label: "Tokens/s", unit: "" }, { key: "queries", label: "Queries", unit: "" },
    ], rows));
}

// Each run against the first: what `ipw compare` says.
function verdictBadge(metric) {
  const kind = { better: "good", worse: "bad" }[metric.verdict] || "";
  return make("span", { class: "badge " + kind }, metric.verdict);
}

const signed = (value, show) => !known(value) ? "–" : (value > 0 ? "+" : value < 0 ? "−" : "") + show(Math.abs(value));

function comparedRows(metrics) {
  return Object.entries(metrics).filter(([, metric]) => known(metric.difference)).map(([name, metric]) => ({ name: name.replaceAll("_", " "), ...metric }));
}

// Joules, watts and seconds have prefixes; shares are in per cent; all else is as it is.
function comparedValue({ value, plus_minus }, { name, unit }) {
  if (["J", "W", "s"].includes(unit)) return withError(value, plus_minus, unit);
  const [scale, after] = name === "accuracy" ? [100, " %"] : [1, unit ? " " + unit : ""];
  return digits(scale * value) + (plus_minus > 0 ? " ± " + digits(scale * plus_minus, 2) : "") + after;
}

function comparisonTable(comparison) {
  const share = value => (100 * value).toFixed(1) + " %", points = value => (100 * value).toFixed(1) + " points";
  const inPoints = row => row.name === "accuracy"; // a share of a share beside shares would be taken for points
  const interval = (ends, show) => ends ? ends.map(value => signed(value, show)).join(" to ") : "–";
  return smallTable("Differences", [
    { key: "name", label: "Metric", text: true },
    { label: "Verdict", text: true, fixed: true, of: verdictBadge },
    { label: "Difference", of: row => row.relative, show: row => inPoints(row) ? signed(row.difference, points) : signed(row.relative, share) },
    { label: "95 %", fixed: true, of: row => at(row.relative_interval_95, 0),
      show: row => inPoints(row) ? interval(row.difference_interval_95, points) : interval(row.relative_interval_95, share) },
    { label: "Baseline", of: row => row.baseline.value, show: row => comparedValue(row.baseline, row) },
    { label: "This run", of: row => row.run.value, show: row => comparedValue(row.run, row) },
    { label: "p (Holm)", of: row => row.p_holm, show: row => known(row.p_holm) ? row.p_holm < 0.001 ? "< 0.001" : row.p_holm.toFixed(3) : "–" },
  ], comparedRows(comparison.metrics), { filter: false });
}

function comparisonSection() {
  const all = DATA.comparison;
  if (!all) return null;
  if (all.missing) return section("comparison", "Against the first run", all.missing);
  return section("comparison", "Against the first run", "Baseline: " + all.baseline.model + " in " + all.baseline.directory
    + ". Better and worse: corrected p under 0.05, and the interval leaves out 0. “No evidence” is not “the same”. ± is a standard error, of the sensors and of how much one query differs from another; under Figures it is of the measurement alone.",
    all.comparisons.map(one => make("div", { class: "compared" },
      make("h3", {}, one.model + (one.hardware_label ? " on " + one.hardware_label : "")),
      make("p", { class: "note mono" }, one.directory),
      make("p", { class: "note" }, one.paired ? (one.pairs < one.same_queries ? one.pairs.toLocaleString("en") + " of " : "") + plural(one.same_queries, "query", "queries") + " that both asked, in pairs" + (one.pairs < one.same_queries ? ": those that both answered" : "") : "as two sets of queries: they asked different questions"),
      one.warnings.length ? make("div", { class: "alert" }, make("ul", {}, one.warnings.map(text => make("li", {}, text)))) : null,
      comparisonTable(one))));
}

// ---- layers ----

// The last part of a path, or of "organisation/name"; any other name is whole.
const shortName = name => /^[\w/.+:@~ \u0080-\uffff-]+$/.test(name) && !name.endsWith("/") ? name.split("/").pop() : name;

function layersSection(model, i) {
  const energy = model.energy || {};
  return section("layers" + (i || ""), "Energy by layer: " + shortName(String(model.model)),
    [model.description, model.attribution, "one pass of the workload: " + withError(energy.joules, energy.plus_minus, "J")].filter(Boolean).join("; "),
    model.closure_pass === false || at(model.null_test, "pass") === false
      ? make("p", { class: "alert" }, "A check of this attribution failed: " + (model.closure_pass === false ? "the parts do not add up to the whole. " : "") + (at(model.null_test, "pass") === false ? "Looking changes what is looked at." : "")) : null,
    make("div", { class: "grid wide" },
      make("div", { class: "card" }, make("h3", {}, "Components"), chartElement("Energy by component", () => componentsOption(model))),
      model.layers.length ? make("div", { class: "card" }, make("h3", {}, "Layers"), chartElement("Energy by layer", () => layersOption(model))) : null),
    smallTable("Components", [
      { key: "name", label: "Component", text: true }, { key: "phase", label: "Phase", text: true }, { key: "energy_j", label: "Energy", unit: "J", show: part => withError(part.energy_j, part.plus_minus, "J") }, { key: "share", label: "Share", unit: "%" }, { key: "energy_per_token_j", label: "Per token", unit: "J" },
      { key: "time_s", label: "Time", unit: "s" }, { key: "power_w", label: "Power", unit: "W" }, { key: "joules_per_gflop", label: "Per GFLOP", unit: "J" },
      { key: "joules_per_gb", label: "Per GB", unit: "J" }, { key: "method", label: "Method", text: true },
    ], model.components));
}

// ---- how to make it again ----

function pairs(object) {
  const entries = Object.entries(object || {}).filter(([, value]) => value !== null && value !== "" && typeof value !== "object");
  return entries.length ? make("dl", { class: "pairs" }, entries.flatMap(([key, value]) => [make("dt", {}, key.replaceAll("_", " ")), make("dd", {}, String(value))])) : null;
}

function environmentSection(run) {
  const summary = run.summary || {}, own = at(summary, "ipw", "own");
  const column = (title, content) => content ? make("div", {}, make("h3", {}, title), content) : null;
  return section("environment", "Environment, and how to make it again", null,
    run.command ? make("pre", { id: "command" }, run.command) : make("p", { class: "note" }, "The run does not tell by which command it was made."),
    make("div", { class: "columns" },
      column("Machine", pairs({ ...summary.system_info, gpu: at(summary, "gpu_info", "name"), "gpu read by": at(summary, "gpu_info", "backend") })),
      column("Service and program", pairs({ ...summary.client_info, "ipw version": at(summary, "versions", "ipw"),
        "ipw's own CPU": own ? withUnit(own.cpu_s, "s") : null, "ipw's own memory": own ? digits(own.rss_mb, 3) + " MB" : null, "sensor reads": own ? own.reads : null })),
      column("Raw files", make("ul", { class: "files" }, run.files.map(file => make("li", {}, make("a", { href: file.href }, file.name), make("span", { class: "dim" }, bytes(file.bytes)))))),
      column("Settings", pairs(summary.profiler_config))));
}

// ---- all of it ----

const SHORT_TITLES = { across: "Side by side", comparison: "Comparison", figures: "Figures", predicted: "Predicted", quality: "Quality", shares: "Energy", timeline: "Timeline", distributions: "Distributions",
  fits: "Fits", groups: "Groups", queries: "Queries", layers: "Layers", environment: "Environment" };

function drawContents() {
  const links = [...document.querySelectorAll("main > section")].filter(part => SHORT_TITLES[part.id])
    .map(part => make("a", { href: "#" + part.id }, SHORT_TITLES[part.id]));
  document.getElementById("contents").replaceChildren(make("div", {}, links));
}

// With several runs: which of them the sections below are about.
function runPicker(run) {
  return make("section", { id: "one", "aria-label": "Which run" },
    make("h2", { class: "paper" }, run.model + (run.hardware ? " on " + run.hardware : "")),
    make("select", { class: "screen",
      id: "run", "aria-label": "Show the run", change: event => { chosen = Number(event.target.value); drawRun(); document.getElementById("run").focus(); },
    }, DATA.runs.map((other, i) => make("option", { value: i, selected: i === chosen }, other.model + (other.hardware ? " on " + other.hardware : "")))),
    topFacts(run));
}

function drawRun() {
  const run = DATA.runs[chosen];
  const name = run && DATA.runs.length > 1 ? runPicker(run) : null;
  const parts = run ? [name, headlineSection(run), predictedSection(run), qualitySection(run), sharesSection(run), timelineSection(run), distributionSection(run), fitSection(run),
    groupSection(run), querySection(run)] : [];
  document.getElementById("main").replaceChildren(...[acrossSection(), comparisonSection(), ...parts, ...DATA.layers.map(layersSection), run ? environmentSection(run) : null].filter(Boolean));
  dropCharts();
  drawTop();
  drawContents();
}

theme.listeners.unshift(() => {}); // the button's place: drawTop fills it
document.getElementById("end").append("Made by ipw " + DATA.version + " at " + DATA.made_at + ". Charts by Apache ECharts, under the Apache License 2.0. This file needs no network.");
drawRun();
document.documentElement.dataset.ready = "yes";

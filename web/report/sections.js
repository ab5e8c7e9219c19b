// The sections of a report, in order, for the selected run.

let chosen = 0;

// Where the report is drawn; `drawn` is called after its sections were replaced.
const page = { main: null, contents: null, drawn: () => {} };

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
    make("span", {}, make("b", {}, plural(run.rows, "query", "queries"))),
    run.failed ? make("b", { class: "failures" }, run.failed.toLocaleString("en") + " failed, not in the means" +
      (at(summary, "ipw", "failure_reason") ? ": " + summary.ipw.failure_reason : "")) : null,
    run.canceled ? make("span", {}, run.canceled.toLocaleString("en") + " canceled, not in the means") : null,
    at(summary, "ipw", "unrecorded_inference", "requests") ? make("span", {},
      plural(summary.ipw.unrecorded_inference.requests, "inference request", "inference requests") + " not recorded") : null,
    at(summary, "ipw", "tokens_note") ? make("span", {}, "tokens unknown: " + summary.ipw.tokens_note) : null,
    fact("client", at(summary, "profiler_config", "client_id")),
    fact("measured", when ? new Date(when * 1000).toISOString().slice(0, 16).replace("T", " ") + " UTC" : ""));
}

function sweepFacts({ result: { summary } }) {
  const fact = (label, value) => make("span", {}, label + " ", make("b", {}, String(value)));
  return make("div", { class: "facts" }, fact("settings", summary.settings ?? 0), fact("attempts", summary.attempts ?? 0),
    summary.failed ? make("b", { class: "failures" }, summary.failed + " failed") : null, summary.estimated ? fact("energies", "estimated") : null);
}

// Facts of one run, one sweep or models; those of several runs are in the picker.
function reportFacts() {
  return DATA.runs.length === 1 ? topFacts(DATA.runs[0]) : DATA.sweeps.length && !DATA.runs.length ? sweepFacts(DATA.sweeps[0])
    : DATA.layers.length ? make("div", { class: "facts" }, "Layers of " + plural(DATA.layers.length, "model")) : make("div");
}

// ---- data quality ----

function deviceTable(run) {
  const devices = at(run.summary, "ipw", "devices") || [];
  if (!devices.length) return null;
  return smallTable("Devices", [
    { key: "id", label: "Device", text: true },
    { label: headingOf("joules"), unit: "J", of: device => at(device, "energy", "joules"),
      show: device => withError(at(device, "energy", "joules"), at(device, "energy", "plus_minus"), "J") },
    { label: "Method", text: true, of: device => at(device, "energy", "method") || at(device, "energy", "note") },
    { label: "Source", text: true, of: device => at(device, "energy", "source") },
    { label: "Coverage", unit: "%", of: device => at(device, "energy", "coverage") },
    { label: "Updates", unit: "", of: device => at(device, "energy", "updates") },
    { label: "Mean power", unit: "W", of: device => device.power_mean_w },
    { label: "Max power", unit: "W", of: device => device.power_max_w },
    { label: "Idle power", unit: "W", of: device => at((at(run.summary, "ipw", "idle", "devices") || []).find(idle => idle.id === device.id), "power_w") },
    { label: "Cross-check", unit: "%", of: device => device.cross_check_residual },
    { label: "In total", text: true, of: device => device.in_total ? "yes" : "no" },
  ], devices);
}

const findingsOf = run => at(run.analyses, "quality", "data", "findings") || at(run.summary, "ipw", "conditions", "findings") || [];
// Findings first, then the checks that found nothing.
const checksOf = run => [...findingsOf(run).map(finding => ({ check: finding.code, verdict: finding.severity, detail: finding.text })),
  ...at(run.analyses, "quality", "data", "checks") || []];
const VERDICTS = ["invalid", "warning", "note", "good", "unknown"];

const badge = (kind, text) => make("span", { class: "badge " + kind }, text);

// How the energy was obtained, with coverage, checks and source.
function evidence(run) {
  const energy = at(run.summary, "ipw", "energy") || {}, checks = checksOf(run);
  return make("p", { class: "evidence" }, badge(...methodOf(run).slice(0, 2)),
    known(energy.coverage) ? badge(energy.coverage >= 0.9 ? "good" : "warning", withUnit(energy.coverage, "%") + " coverage") : null,
    checks.length ? badge("", VERDICTS.map(kind => [kind, checks.filter(check => check.verdict === kind).length])
      .filter(([, count]) => count).map(([kind, count]) => count + " " + kind).join(", ") + " of " + checks.length + " checks") : null,
    energy.source ? make("span", { class: "mono dim" }, energy.source) : null);
}

function qualitySection(run) {
  const checks = checksOf(run), devices = deviceTable(run);
  if (!devices && !checks.length) return null;
  return section("quality", "Data quality", null,
    devices,
    checks.length ? make("details", { class: "printed" }, make("summary", {}, "All " + checks.length + " checks"), smallTable("Checks", [
      { key: "check", label: "Check", text: true, of: check => check.check.replaceAll("_", " ") },
      { label: "Verdict", text: true, of: check => make("span", { class: "badge " + check.verdict }, check.verdict), fixed: true },
      { key: "detail", label: "Detail", text: true },
    ], checks, { filter: false })) : null);
}

// ---- prediction ----

// Estimate and measurement side by side: the figures that both have.
const PREDICTED = ["joules_per_output_token", "joules_per_query", "busy_watts", "latency_s", "time_to_first_token_s", "output_tokens_per_s"];

function predictedSection(run) {
  const said = run.predicted;
  if (!said) return null;
  if (said.note) return section("predicted", "Predicted", said.note);
  const measured = Object.fromEntries(run.headline.map(figure => [figure.key, figure]));
  const rows = PREDICTED.filter(key => known(said[key]) && measured[key])
    .map(key => ({ key, unit: key === "output_tokens_per_s" ? "" : unitOf(key), label: labelOf(measured[key].figure || key), found: measured[key].value, said: said[key], error: said[key + "_plus_minus"] }));
  return section("predicted", "Predicted",
    "By ipw estimate, for a request of " + said.prompt_tokens + " prompt and " + said.output_tokens + " output tokens at batch " + said.batch +
    " on " + said.hardware + " (" + said.precision + ", " + said.confidence + "). Runs with other lengths or batch sizes differ; ipw estimate validate predicts each query with its own.",
    smallTable("Predicted and measured", [
      { key: "label", label: "Figure", text: true },
      { key: "said", label: "Predicted", unit: "", show: row => row.error > 0 ? withError(row.said, row.error, row.unit) : withUnit(row.said, row.unit) },
      { key: "found", label: "Measured", unit: "", show: row => withUnit(row.found, row.unit) },
      { label: "Predicted / measured", unit: "", of: row => known(row.found) && row.found > 0 ? row.said / row.found : null },
    ], rows, { filter: false }));
}

// ---- headline figures ----

function figure(item, i) {
  const [value, error] = item.text === null ? ["unknown"] : item.text.split(" ± ");
  return make("div", { class: "figure" + (i < 2 ? " first" : ""), "data-key": item.key, "data-value": item.value },
    make("dt", {}, item.label || labelOf(item.figure || item.key)),
    make("dd", {},
      make("div", { class: "value" + (item.text === null ? " unknown" : "") }, value,
        error ? make("span", { class: "error" }, " ± " + error) : null),
      item.note ? make("div", { class: "about" }, item.note) : null));
}

// For a single run this is the first screen: the conclusion, then the figures.
function headlineSection(run) {
  const alone = !DATA.across;
  return section("figures", alone ? "Result" : "Figures of " + runName(run), null,
    alone ? answerText() : null,
    make("dl", { class: "figures" }, run.headline.map(figure)),
    make("p", { class: "note after" }, "± is one standard uncertainty; for energy and power, that of the sensors. 95 % CI: sampling error only."
      + (alone ? "" : " It includes the error common to all runs, which the tables above exclude.")),
    evidence(run), warningsFold([run], alone ? "warnings" : "run-warnings"));
}

// ---- energy breakdown ----

const SHARE_COLORS = { prefill: "c4", decode: "c3", queries: "c1", failed: "c5", canceled: "c5", idle: "c6", unattributed: "c2" };

function sharesSection(run) {
  if (!run.shares.length) return null;
  const joules = run.summary.ipw.joules;
  const paint = share => "background:var(--" + SHARE_COLORS[share.key] + ")";
  return section("shares", "Energy breakdown", sentence(methodOf(run)[1]) + " All energy of the machine during the run: attributed to requests, idle between requests, or unattributed."
    + (known(joules.queries_idle_share) ? " Of " + withUnit(joules.queries, "J") + " attributed to queries, " + withUnit(joules.queries_idle_share, "J") + " is idle energy." : "")
    + (known(joules.judge) ? " The judge model took another " + withUnit(joules.judge, "J") + "." : ""),
    make("div", { class: "shares", role: "img", "aria-label": run.shares.map(share => share.label + " " + withUnit(share.joules, "J")).join(", ") },
      run.shares.map(share => make("span", { style: "flex:" + share.share + " 1 0;" + paint(share) }))),
    make("ul", { class: "keys" }, run.shares.map(share => make("li", { "data-share": share.key, "data-value": share.joules }, make("i", { style: paint(share) }),
      share.label + " " + withUnit(share.joules, "J") + " (" + withUnit(share.share, "%") + ")"))));
}

// ---- time, distributions, fits ----

function timelineSection(run) {
  if (!run.timelines.some(timeline => timeline.power.length) && !known(queriesOf(run).from_s.find(known))) return null;
  return section("timeline", "Power over time", sentence(methodOf(run)[1]) + " Mean, minimum and maximum power of each device, from the raw samples. Time 0 is the first query. Drag or use the arrow keys to pan; Ctrl + wheel, pinch, or + and − to zoom.",
    timelineView(run));
}

// "431 of 600 queries", if some are not drawn.
function drawnOf(count, run) {
  return (count < run.rows ? count.toLocaleString("en") + " of " : "") + plural(run.rows, "query", "queries");
}

// Every chart of energy or power states the method.
const energyWord = (run, unit) => ["J", "W"].includes(unit) ? ", " + methodOf(run)[2] : "";

// Of joules, the energy per query.
const distributionFigure = found => found.key === "joules" ? "joules_per_query" : found.key;

function distributionSection(run) {
  if (!run.distributions.length) return null;
  return section("distributions", "Distributions", "Dashed lines: median and 95th percentile; the gray bar collects all larger values. "
    + (run.failed ? plural(run.failed, "failed query", "failed queries") + " excluded." : "")
    + (run.canceled ? " " + plural(run.canceled, "canceled request", "canceled requests") + " excluded." : ""),
    make("div", { class: "grid" }, run.distributions.map(found => {
      const label = labelOf(distributionFigure(found)), unit = unitOf(distributionFigure(found));
      return make("div", { class: "card" }, make("h3", {}, label),
        make("p", { class: "note" }, drawnOf(found.spread.count, run) + energyWord(run, unit) + "; median " + withUnit(found.spread.p50, unit) + ", p95 " + withUnit(found.spread.p95, unit) + ", max " + withUnit(found.spread.max, unit)),
        chartElement(label + ", histogram", () => histogramOption(found, unit), { size: "small" }));
    })));
}

function fitText(run, fit, result) {
  return withError(result.slope, result.slope_error, fitUnit(fit)) + " per token, intercept " + withUnit(result.intercept, fitUnit(fit)) + "; r² " + digits(result.r2, 3) + "; " + drawnOf(result.count, run) + energyWord(run, fitUnit(fit));
}

function fitSection(run) {
  const queries = queriesOf(run);
  const cards = FITS.map(fit => [fit, at(run.analyses, "regression", "data", fit.group, fit.key)])
    .filter(([, result]) => result && known(result.slope))
    .map(([fit, result]) => [fit, result, fitPoints(queries, fit)]).filter(([, , points]) => points.length > 1);
  if (!cards.length) return null;
  return section("fits", "Fits", "Least squares over all completed queries; an even sample of the points is drawn.",
    make("div", { class: "grid wide" }, cards.map(([fit, result, points]) => make("div", { class: "card", "data-fit": fit.key, "data-slope": result.slope },
      make("h3", {}, fitTitle(fit)), make("p", { class: "note" }, fitText(run, fit, result)),
      chartElement(fitTitle(fit), () => fitOption(queries, fit, result, points), { size: "small" })))));
}

// ---- groups ----

// A figure that only some queries have shows how many.
const ofSome = key => row => withUnit(row[key], unitOf(key)) + (known(row[key]) && row[key + "_queries"] < row.queries ? " (" + row[key + "_queries"] + " of " + row.queries + ")" : "");

const GROUP_COLUMNS = [
  figureColumn("queries"), figureColumn("accuracy"),
  figureColumn("joules_per_query", { show: ofSome("joules_per_query") }),
  figureColumn("joules_per_output_token", { show: ofSome("joules_per_output_token") }),
  figureColumn("watts"), figureColumn("latency_s"),
  figureColumn("ttft_p50_s", { key: "time_to_first_token_s", show: ofSome("time_to_first_token_s") }),
  figureColumn("input_tokens"), figureColumn("output_tokens"),
];

// Joins the figures that several analyses have for the same groups.
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
  return section("groups", "By subject and length", "Means of completed queries; energy per token is total energy over total tokens. Query power is energy per query over latency: concurrent requests share the power of the machine.",
    make("div", { class: "tables" }, tables.map(([title, label, rows]) => make("div", {}, make("h3", {}, title),
      smallTable(title, [{ key: "name", label, text: true, wide: true }, ...GROUP_COLUMNS], rows, { filter: rows.length > 1 })))));
}

function querySection(run) {
  const { rows, listed } = run.queries;
  return section("queries", "Queries", (listed < rows ? listed.toLocaleString("en") + " of " + rows.toLocaleString("en") + " queries, an even sample. " : "")
    + "Figures are rounded to four digits; the records have all digits."
    + (run.excerpts.length ? " " + (run.excerpts.length < listed ? "For an even sample of " + run.excerpts.length.toLocaleString("en") + ", the underlined name" : "The name")
      + " shows prompt and answer." : ""), queryTable(run));
}

// ---- layers ----

// The last component of a path or of "organization/name"; other names are unchanged.
const shortName = name => /^[\w/.+:@~ \u0080-\uffff-]+$/.test(name) && !name.endsWith("/") ? name.split("/").pop() : name;

// One heat map per phase, if layers were measured by component.
function heatmaps(model) {
  const phases = [...new Set(model.layers.flatMap(layer => (layer.components || []).map(part => part.phase)))]
    .filter(phase => new Set(layerParts(model, phase).map(part => part.name)).size > 1);
  const parts = phases.flatMap(phase => layerParts(model, phase)), most = Math.max(...parts.map(part => part.energy_j));
  if (!phases.length) return null;
  const largest = parts.find(part => part.energy_j === most);
  return make("div", {}, make("h3", { class: "spaced" }, "Energy by layer and component"),
    make("p", { class: "note" }, "Most in layer " + largest.index + ", " + largest.name + " (" + largest.phase + "): " + withError(largest.energy_j, largest.plus_minus, "J") + "."),
    make("div", { class: "grid wide" }, phases.map(phase => make("div", { class: "card" }, make("h3", {}, phase),
      chartElement("Energy by layer and component, " + phase, () => heatOption(model, phase, most), { size: model.layers.length > 12 ? "tall" : "" })))));
}

function layersSection(model, i) {
  const energy = model.energy || {};
  return section("layers" + (i || ""), "Energy by layer: " + shortName(String(model.model)),
    [model.description, model.attribution, "one pass of the workload: " + withError(energy.joules, energy.plus_minus, "J")].filter(Boolean).join("; "),
    model.closure_pass === false || at(model.null_test, "pass") === false
      ? make("p", { class: "alert" }, "A check of this attribution failed: " + (model.closure_pass === false ? "the parts do not add up to the total. " : "") + (at(model.null_test, "pass") === false ? "the instrumentation overhead is too large." : "")) : null,
    make("div", { class: "grid wide" },
      make("div", { class: "card" }, make("h3", {}, "Components"), chartElement("Energy by component", () => componentsOption(model))),
      model.layers.length ? make("div", { class: "card" }, make("h3", {}, "Layers"), chartElement("Energy by layer", () => layersOption(model))) : null),
    heatmaps(model),
    smallTable("Components", [
      { key: "name", label: "Component", text: true }, { key: "phase", label: "Phase", text: true }, { key: "energy_j", label: headingOf("joules"), unit: "J", show: part => withError(part.energy_j, part.plus_minus, "J") }, { key: "share", label: "Share", unit: "%" }, { key: "energy_per_token_j", label: "Per token", unit: "J" },
      { key: "time_s", label: "Time", unit: "s" }, { key: "power_w", label: "Power", unit: "W" }, { key: "joules_per_gflop", label: "Per GFLOP", unit: "J" },
      { key: "joules_per_gb", label: "Per GB", unit: "J" }, { key: "method", label: "Method", text: true },
    ], model.components));
}

// ---- environment ----

function pairs(object) {
  const entries = Object.entries(object || {}).filter(([, value]) => value !== null && value !== "" && typeof value !== "object");
  return entries.length ? make("dl", { class: "pairs" }, entries.flatMap(([key, value]) => [make("dt", {}, key.replaceAll("_", " ")), make("dd", {}, String(value))])) : null;
}

function environmentSection(run) {
  const summary = run.summary || {}, own = at(summary, "ipw", "own");
  const column = (title, content) => content ? make("div", {}, make("h3", {}, title), content) : null;
  return section("environment", "Environment and command", null,
    run.command ? make("pre", { id: "command" }, run.command) : make("p", { class: "note" }, "The command of this run is unknown."),
    make("div", { class: "columns" },
      column("Machine", pairs({ ...summary.system_info, gpu: at(summary, "gpu_info", "name"), "gpu backend": at(summary, "gpu_info", "backend") })),
      column("Service and program", pairs({ ...summary.client_info, "ipw version": at(summary, "versions", "ipw"),
        "CPU time of ipw": own ? withUnit(own.cpu_s, "s") : null, "memory of ipw": own ? digits(own.rss_mb, 3) + " MB" : null, "sensor reads": own ? own.reads : null })),
      column("Raw files", make("ul", { class: "files" }, run.files.map(file => make("li", {}, make("a", { href: file.href }, file.name), make("span", { class: "dim" }, bytes(file.bytes)))))),
      column("Options", pairs(summary.profiler_config))));
}

// ---- the report ----

const SHORT_TITLES = { sweep: "Sweep", across: "Result", comparison: "Comparison", figures: "Figures", predicted: "Predicted", quality: "Quality", shares: "Energy", timeline: "Timeline", distributions: "Distributions",
  fits: "Fits", agent: "Agent", groups: "Groups", queries: "Queries", layers: "Layers", environment: "Environment" };

function drawContents() {
  const links = [...page.main.children].filter(part => SHORT_TITLES[part.id])
    .map(part => make("a", { href: "#" + part.id }, SHORT_TITLES[part.id]));
  page.contents.replaceChildren(make("div", {}, links));
}

// With several runs: selects the run that the sections below show.
function runPicker(run) {
  return make("section", { id: "one", "aria-label": "Selected run" },
    make("h2", { class: "paper" }, runName(run)),
    make("select", { class: "screen",
      id: "run", "aria-label": "Select a run", change: event => { chosen = Number(event.target.value); drawRun(); document.getElementById("run").focus(); },
    }, DATA.runs.map((other, i) => make("option", { value: i, selected: i === chosen }, DATA.names[i]))),
    topFacts(run));
}

// Runs that could not be read, and why.
function leftOut() {
  return DATA.left_out.length ? make("p", { class: "alert bad", id: "left-out" }, make("strong", {}, "Skipped. "), DATA.left_out.join("; ") + ".") : null;
}

function drawRun() {
  const run = DATA.runs[chosen];
  const name = run && DATA.runs.length > 1 ? runPicker(run) : null;
  const parts = run ? [name, headlineSection(run), predictedSection(run), qualitySection(run), sharesSection(run), agentSection(run), timelineSection(run), distributionSection(run), fitSection(run),
    groupSection(run), querySection(run)] : [];
  page.main.replaceChildren(...[leftOut(), ...DATA.sweeps.map(sweepSection), acrossSection(), comparisonSection(DATA.comparison), ...parts, ...DATA.layers.map(layersSection), run ? environmentSection(run) : null].filter(Boolean));
  dropCharts();
  drawContents();
  page.drawn();
}

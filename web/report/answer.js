// The first screen: the conclusion in a sentence and a small table; then the chart, and notes on the figures, collapsed.
// Repeats of one setting are one row.  Several settings are also compared with the first in a matrix.

const runName = run => DATA.names[DATA.runs.indexOf(run)];

// ---- how energies were obtained ----

// Kind of badge, full text, short text.
function methodOf(run) {
  const method = at(run.summary, "ipw", "energy", "method") || at(run.analyses, "efficiency", "summary", "method");
  const methodUnknown = !method && known(at(run.analyses, "efficiency", "summary", "joules"));
  return methodUnknown ? ["warning", "method of measurement unknown", "method unknown"] : !method ? ["bad", "energy not measured", "not measured"]
    : method === "estimated" ? ["warning", "estimated, not measured", "estimated"] : ["good", "measured by " + method, "measured"];
}

// Of all runs: "Energies estimated, ±60 % common to all, cancels in differences."
function energiesText() {
  const ways = [...new Set(DATA.runs.map(run => methodOf(run)[2]))];
  if (ways.length > 1) return "Energies: " + ways.map(way => way + " in " + namesOf(DATA.runs.filter(run => methodOf(run)[2] === way))).join("; ") + ".";
  const words = { "method unknown": "Energies by an unknown method", "not measured": "Energy was not measured" }[ways[0]] || "Energies " + ways[0];
  return words + (DATA.common_text ? ", " + DATA.common_text : "") + (DATA.mixed ? ", by different sensors" : "") + ".";
}

// ---- the conclusion ----

const FAILED_MOST = 0.05;

const listOf = (names, most = 3) => names.slice(0, most).join(", ") + (names.length > most ? " and " + (names.length - most) + " more" : "");
const namesOf = runs => runs.length === DATA.runs.length && runs.length > 1 ? "all runs" : listOf(runs.map(runName));

// Repeats of one setting are one: "llama-8b (3 runs)".
const withRuns = (name, count) => name + (count > 1 ? ` (${count} runs)` : "");
const settingName = setting => withRuns(setting.name, setting.runs.length);

// Merges texts that differ only in their numbers: "used 1.4 to 1.9 of 2 CPUs".
const FIGURE = /\d[\d.]*(?<!\.)/g;
function withRanges(texts) {
  const figures = texts.map(text => text.match(FIGURE) || []);
  let place = 0;
  return texts[0].replace(FIGURE, () => {
    const all = figures.map(of => of[place]).sort((a, b) => a - b);
    place++;
    return all[0] === all.at(-1) ? all[0] : all[0] + " to " + all.at(-1);
  });
}

// Conditions under which figures must not be compared, and failures: each text once, with its runs.
function obstacles() {
  const found = new Map();
  const add = (text, run) => {
    const key = text.replace(FIGURE, "#");
    found.set(key, [...(found.get(key) || []), { text, run }]);
  };
  for (const run of DATA.runs) {
    for (const finding of at(run.summary, "ipw", "conditions", "findings") || [])
      if (["invalid", "breaks"].includes(finding.severity)) add(finding.text, run);
    if (run.failed > FAILED_MOST * run.rows) add(run.failed.toLocaleString("en") + " of " + run.rows.toLocaleString("en") + " queries failed", run);
  }
  return [...found.values()].map(all => (DATA.runs.length > 1 ? namesOf(all.map(one => one.run)) + ": " : "") + withRanges(all.map(one => one.text)));
}

// One setting, measured several times: its means, and how far runs differ.
function repeatsText(setting) {
  const joules = withInterval(setting.joules_per_query, setting.intervals.joules_per_query, "J");
  const parts = [known(setting.accuracy) && withUnit(setting.accuracy, "%") + " correct", known(setting.joules_per_query) && joules + " per query"].filter(Boolean);
  return [nameNode(setting), ": " + (parts.length ? parts.join(", ") + " (means; ±: 95 % CI between runs). " : "neither graded nor measured. ")];
}

// The program's sentence, with the names of settings in bold; the longest first, since one may contain another.
function severalText() {
  if (DATA.settings.length === 1) return repeatsText(DATA.settings[0]);
  const names = DATA.settings.map(setting => setting.name).sort((a, b) => b.length - a.length);
  const escaped = names.map(name => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const parts = DATA.answer.split(new RegExp("(?<![\\w.-])(" + escaped.join("|") + ")(?![\\w-])"));
  return [parts.map(part => names.includes(part) ? make("b", { class: "name" }, part) : part), " "].flat();
}

const nameNode = setting => make("b", { class: "name" }, settingName(setting));

function oneText(run) {
  const text = key => at(run.headline.find(item => item.key === key), "text");
  const parts = [text("accuracy") && text("accuracy") + " correct", text("joules_per_query") && text("joules_per_query").replace(/ ± [\d.]+/, "") + " per query",
    text("joules_per_output_token") && text("joules_per_output_token").replace(/ ± [\d.]+/, "") + " per output token", text("output_tokens_per_s")].filter(Boolean);
  return parts.length ? [parts.join(", ") + " (n = " + (run.rows - run.failed - (run.canceled || 0)).toLocaleString("en") + "). "] : [];
}

// Problems that invalidate the comparison come first.
function answerText() {
  const broken = obstacles(), said = DATA.across ? severalText() : oneText(DATA.runs[0]);
  return make("div", { id: "sentence" },
    broken.length ? make("p", { class: "alert bad", id: "obstacles" }, make("strong", {}, DATA.across ? "Not comparable. " : "Not reliable. "), broken.join("; ") + ".") : null,
    make("p", { class: "answer" }, said, energiesText()));
}

// ---- warnings: each once, collapsed ----

const withoutKeys = text => text.replace(/\b[a-z]+(_[a-z0-9]+)+\b/g, key => key.replaceAll("_", " "));

function warningsOf(run) {
  const findings = findingsOf(run).filter(finding => finding.severity !== "note" && (run.summary || finding.code !== "no_summary"));
  const all = [...run.notes, ...findings.map(finding => finding.text), ...Object.values(run.analyses).flatMap(result => result.warnings || [])];
  // That energies are estimated is in the sentence above.
  const estimated = methodOf(run)[2] === "estimated";
  return [...new Set(all.map(withoutKeys))].filter(text => !(estimated && /estimated.*not measured/.test(text)));
}

// A warning that differs between runs only in its numbers is one line.
function groupedWarnings(runs) {
  const groups = new Map();
  for (const run of runs)
    for (const text of warningsOf(run)) {
      const shape = text.replace(/[+-]?\d[\d.,]*(e[+-]?\d+)?/g, "#");
      if (!groups.has(shape)) groups.set(shape, { text, runs: [], differ: false });
      const group = groups.get(shape);
      group.differ = group.differ || group.text !== text;
      if (!group.runs.includes(run)) group.runs.push(run);
    }
  return [...groups.values()];
}

const sentence = text => text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");

function warningsFold(runs, id) {
  const several = DATA.runs.length > 1 && runs.length > 1;
  const lines = [...(several ? DATA.across.warnings.map(text => sentence(withoutKeys(text))) : []), ...groupedWarnings(runs).map(({ text, runs: of, differ }) => {
    if (!several) return sentence(text);
    return of.length === 1 ? runName(of[0]) + ": " + text + "."
      : differ ? runName(of[0]) + ": " + text + "; also " + namesOf(of.slice(1)) + "." : sentence(text) + (of.length < DATA.runs.length ? " (" + namesOf(of) + ")" : "");
  })];
  if (!lines.length) return null;
  return make("details", { id, class: "warnings printed" }, make("summary", {}, plural(lines.length, "note") + " on these figures"),
    make("ul", {}, lines.map(text => make("li", {}, text))));
}

// ---- several runs ----

// "54 ± 12 mJ": ± is the half-width of the 95 % interval, without errors common to all runs.
function withInterval(value, ends, unit) {
  return ends && known(value) ? withError(value, (ends[1] - ends[0]) / 2, unit) : withUnit(value, unit, 3);
}

// What stands on the quality axis: the accuracy, or a metric of all answers of runs without one.
const qualityName = () => DATA.quality ? DATA.quality.name : headingOf("accuracy").toLowerCase();
const qualityOf = setting => DATA.quality ? setting.quality : setting.accuracy;
const qualityEnds = setting => DATA.quality ? setting.quality_interval_95 : setting.intervals.accuracy;
const qualityText = value => DATA.quality ? digits(value, 3) : withUnit(value, "%");

function answerTable() {
  const rows = DATA.settings.map((setting, i) => ({ ...setting, i, on: setting.pareto_optimal ? "yes" : "" }));
  const differs = key => new Set(rows.map(row => row[key])).size > 1;
  const choose = row => make("button", { type: "button", class: "chooser", title: row.runs.length > 1 ? "Show the first of these runs below" : "Show this run below",
    click: () => { chosen = row.runs[0]; drawRun(); document.getElementById("one").scrollIntoView(); } }, settingName(row));
  const percents = ends => ends ? " (" + ends.map(end => (100 * end).toFixed(0)).join("–") + ")" : "";
  return smallTable("Runs", [
    { label: "Run", text: true, of: settingName, view: row => make("span", {}, make("small", { class: "dim" }, row.i + 1 + " "), choose(row)) },
    DATA.quality ? { key: "quality", label: qualityName() + " (95 % CI)", show: row => digits(row.quality, 3) + (row.quality_interval_95 ? " (" + row.quality_interval_95.map(end => digits(end, 3)).join("–") + ")" : "") }
      : { key: "accuracy", label: headingOf("accuracy") + " (95 % CI)", show: row => withUnit(row.accuracy, "%") + percents(row.intervals.accuracy) },
    figureColumn("joules_per_query", { show: row => withInterval(row.joules_per_query, row.intervals.joules_per_query, "J") }),
    figureColumn("joules_per_output_token", { show: run => withUnit(run.joules_per_output_token, "J", 3) }),
    figureColumn("output_tokens_per_s", { show: run => digits(run.output_tokens_per_s, 3) }),
    figureColumn("busy_watts", { key: "watts", show: run => withUnit(run.watts, "W", 3) }),
    figureColumn("ipj", { show: run => withUnit(run.ipj, "1/J", 3) }),
    ...(differs("concurrency") ? [{ key: "concurrency", label: "Concurrency", unit: "" }] : []),
    figureColumn("queries"),
    ...(rows.length > 1 ? [{ key: "on", label: "Pareto-optimal", text: true }] : []),
  ], rows);
}

const frontierTitle = () => DATA.quality ? qualityName() + " against " + labelOf("joules_per_query").toLowerCase() : against("accuracy", "joules_per_query");

function acrossSection() {
  if (!DATA.across) return null;
  const settings = DATA.settings.map(setting => ({ ...setting, name: settingName(setting) }));
  const drawn = settings.filter(setting => known(qualityOf(setting)) && known(setting.joules_per_query)).length;
  const legend = make("p", { class: "legend", id: "frontier-legend" });
  const repeated = settings.some(setting => setting.runs.length > 1);
  const notes = [drawn < settings.length ? drawn + " of " + settings.length + " runs; the others without grades or energy." : null, energiesText(),
    "Bars and ±: 95 % CI" + DATA.spread_text + (DATA.mixed ? ", sensors included." : "."), repeated ? "Several runs of one setting: mean, with the CI between runs." : null,
    "Pareto-optimal: no other run is at least as " + (DATA.quality ? "good" : "accurate") + " with at most as much energy, and better in one of the two."].filter(Boolean);
  return section("across", "Result", null, answerText(), answerTable(),
    drawn > 1 ? make("h3", {}, frontierTitle()) : null,
    drawn > 1 ? make("p", { class: "note", id: "frontier-note" }, notes.join(" ")) : null,
    drawn > 1 ? chartElement(frontierTitle(), () => frontierOption(settings, legend), { size: settings.length > 8 ? "tall" : "" }) : null, legend,
    warningsFold(DATA.runs, "warnings"));
}

// ---- against the first run ----

const signed = (value, show) => !known(value) ? "–" : (value > 0 ? "+" : value < 0 ? "−" : "") + show(Math.abs(value));
const share = value => (100 * value).toFixed(1) + " %", points = value => (100 * value).toFixed(1) + " points";

const comparedValue = ({ value, plus_minus }, unit) => withError(value, plus_minus, unit || "%");

const differenceOf = (name, metric) => name === "accuracy" ? signed(metric.difference, points) : signed(metric.relative, share);

// A p-value at the floor of the permutation test is an upper bound: rounded up as in the program's text output.
function pValue({ p_holm: p, p_is_bound: bound }) {
  if (!known(p)) return "–";
  if (p >= 0.001 && !(bound && p < 1)) return p.toFixed(3);
  return "< " + ([0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5].find(mark => p * (1 + 1e-9) < mark) || 1);
}

const intervalText = (name, metric) => {
  const [ends, show] = name === "accuracy" ? [metric.difference_interval_95, points] : [metric.relative_interval_95, share];
  return ends ? ends.map(value => signed(value, show)).join(" to ") : "–";
};

const sideName = side => withRuns(side.name, side.directories.length);

// The other metrics are in the table of all differences.
const MATRIX_WIDTH = 7; // columns that fit on a screen; with prices, costs replace the least important ones
const MATRIX = ["accuracy", "energy_per_query", "energy_per_output_token", "latency", "ttft", "tokens_per_s", "ipj", "cost_per_query", "gco2e_per_query"];

// One row per run, one column per metric: the difference and the verdict.
function verdictCell(name, metric) {
  if (!metric || !known(metric.difference)) return make("td", { class: "number" }, "–");
  const kind = { better: "good", worse: "bad" }[metric.verdict] || "";
  return make("td", { class: "number verdict " + kind, "data-metric": name, title: metric.statement + "; 95 % CI " + intervalText(name, metric) + "; p " + pValue(metric) },
    make("div", {}, differenceOf(name, metric)), make("small", {}, metric.verdict));
}

function matrixTable(all) {
  const shown = MATRIX.filter(name => all.comparisons[0].metrics[name]).filter(name => all.comparisons.some(one => known(one.metrics[name].difference)));
  const used = shown.filter(name => shown.length <= MATRIX_WIDTH || !["ttft", "ipj"].includes(name));
  const nameOf = side => make("th", { scope: "row", class: "text" }, sideName(side));
  const first = all.comparisons[0].metrics;
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Differences" }, make("table", { class: "matrix" },
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, make("span", {}, "Run")), used.map(name => make("th", { scope: "col", class: "number" }, make("span", {}, first[name].label))))),
    make("tbody", {},
      make("tr", { class: "baseline" }, nameOf(all.baseline), used.map(name => make("td", { class: "number" }, comparedValue(first[name].baseline, first[name].unit)))),
      all.comparisons.map(one => make("tr", {}, nameOf(one), used.map(name => verdictCell(name, one.metrics[name])))))));
}

// Every figure of the matrix with its interval and p-value.
function differencesTable(all) {
  const rows = all.comparisons.flatMap(one => Object.entries(one.metrics).filter(([, metric]) => known(metric.difference))
    .map(([name, metric]) => ({ run: sideName(one), name, metric })));
  return smallTable("All differences", [
    { key: "run", label: "Run", text: true }, { label: "Metric", text: true, of: row => row.metric.label },
    { label: "Difference", of: row => row.metric.relative, show: row => differenceOf(row.name, row.metric) },
    { label: "95 % CI", fixed: true, of: row => at(row.metric.relative_interval_95, 0), show: row => intervalText(row.name, row.metric) },
    { label: "Baseline", of: row => row.metric.baseline.value, show: row => comparedValue(row.metric.baseline, row.metric.unit) },
    { label: "This run", of: row => row.metric.run.value, show: row => comparedValue(row.metric.run, row.metric.unit) },
    { label: "p (Holm)", of: row => row.metric.p_holm, show: row => pValue(row.metric) },
    { label: "Verdict", text: true, of: row => row.metric.verdict },
  ], rows, { filter: rows.length > 8 });
}

function comparisonSection(all) {
  if (!all) return null;
  if (all.missing) return section("comparison", "Comparison", sentence(all.missing));
  const pairs = all.comparisons.map(one => one.paired ? one.pairs : 0);
  const paired = pairs.every(count => count > 0) ? (Math.min(...pairs) === Math.max(...pairs) ? pairs[0] : Math.min(...pairs) + " to " + Math.max(...pairs)).toLocaleString("en")
    + " queries that both runs completed, paired." : "Some runs asked different queries and are compared unpaired.";
  const warnings = [...new Map(all.comparisons.flatMap(one => one.findings.map(({ text }) => [text.replace(/\d[\d.,]*/g, "#"), [text, sideName(one)]]))).values()]
    .filter(([text]) => !/estimated by a model|^another model/.test(text));
  const bases = [...new Set(all.comparisons.map(one => one.basis).filter(Boolean))];
  return section("comparison", "Comparison with " + sideName(all.baseline), paired + " Better and worse: p < 0.05, and the 95 % CI excludes 0; “no evidence” is not “equal”. " + bases.join(" "),
    matrixTable(all),
    make("details", { class: "fold" }, make("summary", {}, "All differences with CI and p"), differencesTable(all)),
    warnings.length ? make("details", { class: "fold", id: "comparison-warnings" }, make("summary", {}, plural(warnings.length, "note") + " on this comparison"),
      make("ul", {}, warnings.map(([text, name]) => make("li", {}, name + ": " + withoutKeys(text) + ".")))) : null);
}

// A sweep: the saving of its best setting in a sentence, a table of the settings, and a chart.

// The knob of the x axis: the only one, with numeric values; otherwise null.
function knobOf(settings) {
  const names = Object.keys(settings[0].values).filter(name => settings.some(row => row.values[name] !== settings[0].values[name]));
  const numbers = settings.filter(row => Number.isFinite(Number(row.values[names[0]]))).length;
  return names.length === 1 && numbers > 1 ? names[0] : null;
}

const settingTip = (row, per) => tip(row.setting, [["energy per " + per, withError(row.joules, row.joules_error, "J")], ["time per " + per, withError(row.seconds, row.seconds_error, "s")],
  ["mean power", withUnit(row.watts, "W")], ["EDP", withUnit(row.edp, "J·s")], ["ED²P", withUnit(row.ed2p, "J·s²")], ["energy", (row.method || "unknown") + (row.source ? ", " + row.source : "")], [row.pareto_optimal ? "Pareto-optimal" : "dominated", ""]]);

// Energy and time against the knob, each with its own axis.
function knobOption(settings, knob, per) {
  const rows = settings.filter(row => Number.isFinite(Number(row.values[knob]))).sort((a, b) => a.values[knob] - b.values[knob]);
  const line = (key, i) => ({ type: "line", name: key, yAxisIndex: i, data: rows.map(row => [Number(row.values[knob]), row[key]]), symbolSize: 8,
    symbol: i ? "rect" : "circle", lineStyle: { color: seriesColor(i), type: i ? [5, 4] : "solid" }, itemStyle: { color: seriesColor(i) } });
  const bars = rows.filter(row => row.joules_error > 0).map(row => [Number(row.values[knob]), row.joules, row.joules - 1.96 * row.joules_error, row.joules + 1.96 * row.joules_error]);
  const most = key => Math.max(...rows.map(row => row[key]));
  return {
    ...baseOption(),
    grid: { left: 30, right: 30, top: 34, bottom: 26, containLabel: true },
    legend: { top: 0, textStyle: { color: color("dim") }, data: ["joules", "seconds"], formatter: key => (key === "joules" ? "energy per " : "time per ") + per },
    xAxis: axis({ type: "value", scale: true, name: knob }),
    yAxis: [unitAxis("J", { type: "value", min: 0, name: "energy per " + per, nameGap: 46 }, most("joules")),
      unitAxis("s", { type: "value", min: 0, name: "time per " + per, nameGap: 46, splitLine: { show: false } }, most("seconds"))],
    tooltip: { ...baseOption().tooltip, trigger: "item", formatter: ({ dataIndex }) => settingTip(rows[dataIndex], per) },
    series: [line("joules", 0), line("seconds", 1),
      { type: "custom", data: bars, encode: { x: 0, y: [1, 2, 3] }, silent: true, tooltip: { show: false }, renderItem: (_, api) => {
        const [x, low] = api.coord([api.value(0), api.value(2)]), high = api.coord([api.value(0), api.value(3)])[1];
        return { type: "line", shape: { x1: x, y1: low, x2: x, y2: high }, style: { stroke: seriesColor(0), lineWidth: 1.5 } };
      } }],
  };
}

// Energy against time, with the Pareto-optimal settings.
function tradeOption(settings, per, legend) {
  const rows = settings.filter(row => known(row.joules) && known(row.seconds)), most = key => Math.max(...rows.map(row => row[key]));
  const short = name => name.length > 28 ? name.slice(0, 27) + "…" : name;
  const points = rows.map((row, i) => ({ value: [row.seconds, row.joules, i], name: short(row.setting), itemStyle: { color: color(row.pareto_optimal ? "c1" : "c6") }, symbolSize: row.pareto_optimal ? 13 : 9 }));
  const edge = rows.filter(row => row.pareto_optimal).map(row => [row.seconds, row.joules]).sort((a, b) => a[0] - b[0]);
  return {
    ...baseOption(),
    grid: { left: 28, right: 60, top: 24, bottom: 26, containLabel: true },
    xAxis: unitAxis("s", { type: "value", min: 0, name: "time per " + per + " (lower is better)" }, most("seconds")),
    yAxis: unitAxis("J", { type: "value", min: 0, name: "energy per " + per, nameGap: 56 }, most("joules")),
    tooltip: { ...baseOption().tooltip, trigger: "item", formatter: ({ value }) => settingTip(rows[value[2]], per) },
    series: [{ type: "line", data: edge, symbol: "none", silent: true, tooltip: { show: false }, lineStyle: { color: color("c1"), width: 1.5, type: [5, 4] } },
      { type: "scatter", data: points, z: 3 }, labelSeries(points.filter(point => rows[point.value[2]].pareto_optimal), legend)],
  };
}

// If there are many, those with the least energy.
const SETTINGS_SHOWN = 8;

function settingsTable(summary, settings, rows) {
  const base = settings.find(row => row.setting === summary.baseline);
  return smallTable("Settings", [
    { label: "Setting", text: true, of: row => row.setting }, { key: "joules", label: headingOf("joules") + " per " + summary.per, unit: "J", show: row => withError(row.joules, row.joules_error, "J") },
    { label: "Saving", unit: "%", of: row => base && row !== base && known(row.joules) ? 1 - row.joules / base.joules : null },
    { key: "seconds", label: "Time per " + summary.per, unit: "s", show: row => withError(row.seconds, row.seconds_error, "s") }, { key: "watts", label: "Power", unit: "W" },
    { key: "edp", label: "EDP", unit: "J·s" }, { key: "ed2p", label: "ED²P", unit: "J·s²" }, figureColumn("accuracy"), figureColumn("perplexity"),
    ...(summary.qualities || []).map(name => ({ key: name, label: name, unit: "" })),
    { label: "Method", text: true, of: row => row.method || "unknown" }, { label: "Source", text: true, of: row => row.source || "unknown" }, { key: "coverage", label: "Coverage", unit: "%" },
    { label: "Pareto-optimal", text: true, of: row => row.pareto_optimal ? "yes" : "no" }, { key: "repeats", label: "Repeats", unit: "" },
  ], rows);
}

function sweepSection(sweep, i) {
  const id = "sweep" + (i || ""), title = DATA.sweeps.length > 1 ? "Sweep " + sweep.name : "Result";
  if (!sweep.result.data.settings) return section(id, title, null, make("p", { class: "alert" }, sentence(sweep.result.summary.not_enough_data || "no setting was measured")));
  const { summary, data, warnings } = sweep.result, knob = knobOf(data.settings), legend = make("p", { class: "legend" });
  const drawn = data.settings.filter(row => known(row.joules) && known(row.seconds)).length;
  const label = knob ? "Energy and time against " + knob : "Energy against time";
  return section(id, title, null,
    make("p", { class: "answer" }, summary.conclusion),
    settingsTable(summary, data.settings, data.settings.slice(0, SETTINGS_SHOWN)),
    data.settings.length > SETTINGS_SHOWN ? make("details", { class: "printed" }, make("summary", {}, "All " + data.settings.length + " settings"), settingsTable(summary, data.settings, data.settings)) : null,
    make("p", { class: "note after" }, "Settings with the least energy first; ± are standard uncertainties" + (summary.baseline ? "; savings in the table are against " + summary.baseline : "") + ". ipw optimize chooses by EDP or ED²P, or within limits."),
    drawn > 1 ? make("h3", { class: "spaced" }, label) : null,
    drawn > 1 ? chartElement(label, () => knob ? knobOption(data.settings, knob, summary.per) : tradeOption(data.settings, summary.per, legend)) : null, drawn > 1 ? legend : null,
    warnings.length ? make("ul", { class: "note" }, warnings.map(text => make("li", {}, sentence(text)))) : null);
}

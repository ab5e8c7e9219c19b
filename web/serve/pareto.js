// The Pareto frontier over all runs: those that no other run dominates in both figures.

pages.push({ path: /^\/pareto$/, name: "Pareto", href: "/pareto", draw: paretoPage });

// Pairs of axes: energy on x, benefit on y.
const TRADES = {
  accuracy: { x: "j_per_query", y: "accuracy", figures: ["accuracy", "joules_per_query"] },
  throughput: { x: "j_per_output_token", y: "output_tokens_per_s", figures: ["output_tokens_per_s", "joules_per_output_token"] },
};
const GROUPINGS = { hardware: "Hardware", model: "Model", precision: "Precision" };
const SYMBOLS = ["circle", "rect", "triangle", "diamond", "roundRect", "pin"];
const LABELED_MOST = 30, BARS_MOST = 300, ROWS_MOST = 500;

const axisUnit = found => found.unit === "" ? "%" : ["J", "s", "W"].includes(found.unit) ? found.unit : "";
const axisName = found => found.label.toLowerCase() + (axisUnit(found) ? "" : " (" + found.unit + ")") + (found.better === "low" ? ", lower is better" : "");
const axisValue = (found, value, error) => withError(value, error, axisUnit(found));

function paretoAnswer({ x, y, points, left_out }) {
  const front = points.filter(point => point.on_front);
  if (!front.length) return [];
  const best = (key, better) => front.reduce((most, point) => (better === "low" ? point[key] < most[key] : point[key] > most[key]) ? point : most);
  const cheap = best("x", x.better), good = best("y", y.better), named = point => link(runPath(point.id), point.name);
  const figures = point => axisValue(x, point.x) + " with " + y.label.toLowerCase() + " " + axisValue(y, point.y);
  return [make("p", { class: "answer" }, plural(front.length, "run") + " of " + points.length.toLocaleString("en") + (front.length === 1 ? " is" : " are") + " Pareto-optimal: ",
    cheap === good ? [named(good), " is best in both, at " + figures(good) + "."] : [named(cheap), " has the lowest " + x.label.toLowerCase() + ", " + figures(cheap) + "; ", named(good), " has the best " + y.label.toLowerCase() + ", at " + figures(good) + "."]),
  left_out ? make("p", { class: "note" }, plural(left_out, "run") + " without both figures excluded.") : null];
}

function groupColors(points) {
  const groups = [...new Set(points.map(point => point.group || "unknown"))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const place = new Map(groups.map((group, i) => [group, i]));
  return { groups, colorOf: group => place.get(group) < SERIES_COLORS.length ? SERIES_COLORS[place.get(group)] : "c6", symbolOf: group => SYMBOLS[place.get(group) % SYMBOLS.length] };
}

// Groups have colors and symbols, since color alone is not accessible.
const MARKS = { circle: "●", rect: "■", triangle: "▲", diamond: "◆", roundRect: "▢", pin: "▼" };

function paretoChart(found, legend) {
  const { points, x, y } = found, { groups, colorOf, symbolOf } = groupColors(points);
  const ends = (value, error) => known(error) ? [value - 1.96 * error, value + 1.96 * error] : null;
  const few = points.filter(point => point.on_front).length <= LABELED_MOST, barred = points.length <= BARS_MOST;
  const option = () => frontOption(points.map((point, place) => ({ x: point.x, y: point.y, place, name: point.name, xEnds: barred || point.on_front ? ends(point.x, point.x_plus_minus) : null, yEnds: barred || point.on_front ? ends(point.y, point.y_plus_minus) : null, onFront: point.on_front,
    color: color(colorOf(point.group || "unknown")), symbol: symbolOf(point.group || "unknown"), labeled: few && point.on_front })),
  { unit: axisUnit(x), name: axisName(x) }, { unit: axisUnit(y), name: axisName(y) }, legend, place => tip(points[place].name, [["group", points[place].group || "unknown"], [x.label.toLowerCase(), axisValue(x, points[place].x, points[place].x_plus_minus)],
    [y.label.toLowerCase(), axisValue(y, points[place].y, points[place].y_plus_minus)], [points[place].on_front ? "Pareto-optimal" : "dominated", ""]]));
  const chart = chartElement(y.label + " against " + x.label.toLowerCase() + "; the table below has the same figures", option, { size: "tall",
    ready: made => made.on("click", { seriesType: "scatter" }, event => go(runPath(points[event.value[2]].id))) });
  return make("div", {}, make("ul", { class: "keys" }, groups.map(group => make("li", {}, make("span", { class: "mark", style: "color:var(--" + colorOf(group) + ")", "aria-hidden": "true" }, MARKS[symbolOf(group)]), " " + group))), chart);
}

// The frontier first; of very many dominated runs, only the cheapest.
function paretoTable({ x, y, points }, group) {
  const rows = points.map((point, place) => ({ ...point, place })).sort((a, b) => b.on_front - a.on_front || a.x - b.x);
  return [rows.length > ROWS_MOST ? make("p", { class: "note" }, ROWS_MOST + " of " + plural(rows.length, "run") + ".") : null, smallTable("Runs on and off the Pareto frontier", [
    { label: "Run", text: true, of: point => point.name, view: point => make("span", {}, make("small", { class: "dim" }, point.place + 1 + " "), link(runPath(point.id), point.name)) },
    { key: "group", label: GROUPINGS[group], text: true },
    { key: "x", label: x.label, show: point => axisValue(x, point.x, point.x_plus_minus) }, { key: "y", label: y.label, show: point => axisValue(y, point.y, point.y_plus_minus) },
    { label: "Pareto-optimal", text: true, of: point => point.on_front ? "yes" : "no" },
  ], rows.slice(0, ROWS_MOST), { filter: points.length > 8 })];
}

function choice(id, label, options, value, choose) {
  return make("label", {}, label, make("select", { id, change: event => choose(event.target.value) },
    options.map(([key, name]) => make("option", { value: key, selected: key === value }, name))));
}

async function paretoPage(view) {
  const asked = { trade: TRADES[view.query.get("trade")] ? view.query.get("trade") : "accuracy", group: GROUPINGS[view.query.get("group")] ? view.query.get("group") : "hardware" };
  const trade = TRADES[asked.trade], again = changes => go("/pareto" + queryText({ ...asked, ...changes }));
  view.title("Pareto frontier");
  const form = make("div", { class: "form wide" },
    choice("trade", "Axes", Object.entries(TRADES).map(([key, trade]) => [key, against(...trade.figures)]), asked.trade, value => again({ trade: value })),
    choice("group", "Grouped by", Object.entries(GROUPINGS), asked.group, value => again({ group: value })));
  const found = await ask(view, "pareto", { x: trade.x, y: trade.y, group: asked.group });
  const legend = make("p", { class: "legend" });
  view.put(section("front", against(...trade.figures), null, paretoAnswer(found), form,
    found.points.length ? [paretoChart(found, legend), legend,
      make("p", { class: "note" }, "Bars: 95 % interval where it is known. Pareto-optimal: no other run is at least as good in both and better in one. Select a point to open its run.")]
      : emptyState("No run has both figures.", (found.left_out ? plural(found.left_out, "run") + " without " : "They need ") + found.x.label.toLowerCase() + " and " + found.y.label.toLowerCase() + ".")),
  found.points.length ? section("front-table", "The same as a table", null, paretoTable(found, asked.group)) : null);
}

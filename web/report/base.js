// Common code: the data, DOM elements, number formatting, packed columns, the theme.

let DATA = null; // data of the sections: set by the page before drawing
const FIGURES = {}; // names and units of figures, as record.def has them: {key: {label, heading, unit}}

const capital = text => text.charAt(0).toUpperCase() + text.slice(1);
const labelOf = key => capital(FIGURES[key].label), headingOf = key => capital(FIGURES[key].heading);
const unitOf = key => ({ "": "%", 1: "" })[FIGURES[key].unit] ?? FIGURES[key].unit;
const against = (y, x) => labelOf(y) + " against " + labelOf(x).toLowerCase();

// A column of a table that shows this figure.
const figureColumn = (figure, more) => ({ key: figure, get label() { return headingOf(figure); }, get unit() { return unitOf(figure); }, ...more });

// ---- elements: text from the data is never parsed as HTML ----

// make("p", {class: "note"}, "text", child, [children] ...); null children are omitted.
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {}))
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name === "style") element.style.cssText = value; // as an attribute, a strict CSP would block it
    else if (value !== null && value !== undefined && value !== false)
      element.setAttribute(name, value === true ? "" : String(value));
  element.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined));
  return element;
}

// The value at a path of an object: at(run, "summary", "ipw", "energy"); null if it does not exist.
function at(object, ...names) {
  for (const name of names) object = object === null || object === undefined ? null : object[name];
  return object === undefined ? null : object;
}

const known = value => typeof value === "number" && Number.isFinite(value);

// ---- numbers: formatted as in the program's text output ----

const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];

function digits(value, places = 4) {
  if (!known(value)) return "–";
  if (value === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(value)));
  if (size > 14) return value.toExponential(places - 1);
  return size >= places ? value.toFixed(0) : value.toFixed(Math.min(12, Math.max(0, places - 1 - size)));
}

// Values beyond the range of the prefixes.
const beyondPrefixes = scaled => Math.abs(scaled) >= 99999.5;

// Scale and prefixed unit for a figure of this size: "mJ"; for 1/J the joule gets the prefix, "/kJ"; "/s" has none.
function prefixed(size, unit) {
  if (!unit || unit === "%" || unit === "1/s" || unit === "currency") return [1, unit === "1/s" ? "/s" : unit === "currency" ? "" : unit];
  if (!unit.startsWith("1/")) {
    const [scale, prefix] = PREFIXES.find(([least]) => size >= least * 0.99995) || (size ? PREFIXES.at(-1) : [1, ""]);
    return [scale, prefix + unit];
  }
  const [scale, prefix] = PREFIXES.slice().reverse().find(([most]) => size * most >= 0.99995) || (size ? PREFIXES[0] : [1, ""]);
  return [1 / scale, "/" + prefix + unit.slice(2)];
}

// 0.01234 J is 12.34 mJ; shares, counts and tokens have no prefix.
function withUnit(value, unit, places = 4) {
  if (!known(value)) return "–";
  if (unit === "%") return (100 * value).toFixed(1).replace("-0.0", "0.0") + " %";
  if (unit === "currency") return digits(value, places);
  if (!unit) return Number.isInteger(value) ? value.toLocaleString("en") : digits(value, places);
  const [scale, name] = prefixed(Math.abs(value), unit);
  if (value === 0) return "0 " + name;
  if (beyondPrefixes(value / scale) && name !== "/s") return value.toExponential(places - 1) + " " + unit;
  if (Math.abs(value / scale) < 0.0005 && name !== "/s") return (value > 0 ? "< " : "> -") + "0.001 " + name;
  return digits(value / scale, places) + " " + name;
}

// Value and uncertainty with one prefix, to two digits of the uncertainty: "12.35 ± 0.36 kJ", "22 ± 13 /kJ".
function withError(value, error, unit) {
  if (!known(value) || !known(error) || error <= 0) return withUnit(value, unit);
  let [scale, name] = prefixed(Math.max(Math.abs(value), error), unit);
  if (unit === "%") scale = 0.01;
  if (name && beyondPrefixes(Math.max(Math.abs(value), error) / scale)) return value.toExponential(3) + " ± " + error.toExponential(1) + " " + unit;
  const place = Math.floor(Math.log10(error / scale / 0.995)) - 1; // from 0.995 on it rounds to 1.0
  if (place < (unit === "currency" ? -12 : -6)) return withUnit(value, unit);
  const step = 10 ** place, show = figure => (Math.round(figure / scale / step) * step + 0).toFixed(Math.max(0, -place));
  return show(value) + " ± " + show(error) + (name ? " " + name : "");
}

const bytes = count => count < 1000 ? count + " B" : withUnit(count, "B", 3);
const plural = (count, one, many) => count.toLocaleString("en") + " " + (count === 1 ? one : many || one + "s");

// ---- packed columns: see src/report/html/column.h ----

function unpack(column, count) {
  const values = new Float64Array(count);
  if ("same" in column) return values.fill(column.same === null ? NaN : column.same);
  if ("first" in column) return values.map((_, i) => column.first + i * column.by);
  const text = atob(column.data), width = column.bytes, none = 2 ** (8 * width) - 1;
  for (let i = 0, place = 0; i < count; i++) {
    let code = 0;
    for (let b = 0; b < width; b++) code += text.charCodeAt(place++) * 2 ** (8 * b);
    values[i] = code === none ? NaN
      : column.log ? column.low * Math.exp(code * column.step) : column.low + code * column.step;
  }
  return values;
}

// The queries of a run as typed arrays, unpacked on first use.
const unpacked = new WeakMap();
function queriesOf(run) {
  if (!unpacked.has(run)) {
    const packed = run.queries, columns = {};
    for (const [name, column] of Object.entries(packed))
      if (column && typeof column === "object" && !Array.isArray(column)) columns[name] = unpack(column, packed.listed);
    unpacked.set(run, { ...columns, count: packed.listed, rows: packed.rows, subjects: packed.subjects });
  }
  return unpacked.get(run);
}

const FLAG = { right: 1, wrong: 2, failed: 4, low: 8, canceled: 16, unread: 32 };

// "q000012.r1", the key in the records.
function keyOf(queries, row) {
  const repeat = queries.repeat[row];
  return "q" + String(queries.index[row]).padStart(6, "0") + (repeat > 0 ? ".r" + repeat : "");
}

const subjectOf = (queries, row) => queries.subjects[queries.subject[row]] || "";

function verdictOf(queries, row) {
  const flags = queries.flags[row];
  return flags & FLAG.failed ? "failed" : flags & FLAG.canceled ? "canceled" : flags & FLAG.right ? "correct" : flags & FLAG.wrong ? "incorrect" : flags & FLAG.unread ? "unread" : "not graded";
}

// ---- light and dark ----

const theme = {
  listeners: [],
  prefersDark: matchMedia("(prefers-color-scheme: dark)"),
  chosen: null, // null: the system setting
  forPrint: false,
  isDark() { return !this.forPrint && (this.chosen ? this.chosen === "dark" : this.prefersDark.matches); },
  apply() {
    document.documentElement.dataset.theme = this.isDark() ? "dark" : "light";
    for (const listener of this.listeners) listener();
  },
  toggle() {
    this.chosen = this.isDark() ? "light" : "dark";
    this.apply();
  },
};
theme.prefersDark.addEventListener("change", () => theme.apply());
theme.apply();

// Labeled with the theme that it switches to.
function themeButton() {
  const label = () => theme.isDark() ? "Light" : "Dark";
  const button = make("button", { type: "button", id: "theme", "aria-label": "Switch between light and dark", click: () => theme.toggle() }, label());
  theme.listeners.push(() => { button.textContent = label(); });
  return button;
}

const color = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

// Tables that sort by their column headers and filter by words.

// columns: {key, label, unit, text}: `text` marks text columns; values are row[key] or column.of(row), displayed by
// column.view(row), which returns an element, if defined.
function valueOf(column, row) {
  return column.of ? column.of(row) : row[column.key];
}

// Unknown values are last in both directions.
function compareValues(a, b, direction) {
  const aMissing = a === null || a === undefined || a === "" || Number.isNaN(a);
  const bMissing = b === null || b === undefined || b === "" || Number.isNaN(b);
  if (aMissing || bMissing) return aMissing - bMissing;
  const order = typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
  return direction * order;
}

function cell(column, row, isHead) {
  const value = valueOf(column, row);
  if (column.view) return make(isHead ? "th" : "td", { class: column.wide ? "text wide" : "text", scope: isHead ? "row" : null }, column.view(row));
  if (value instanceof Node) return make("td", {}, value);
  if (column.text) return make(isHead ? "th" : "td", { class: column.wide ? "text wide" : "text", scope: isHead ? "row" : null }, value || "–");
  return make("td", { class: "number", "data-value": known(value) ? value : null },
    column.show ? column.show(row) : withUnit(value, column.unit));
}

// A column header with a button to sort by it.
function headCell(column, state, onSort) {
  const sorted = state.column === column;
  const head = make("th", {
    scope: "col", class: column.text ? null : "number",
    "aria-sort": sorted ? (state.direction > 0 ? "ascending" : "descending") : "none",
  });
  head.append(column.fixed ? make("span", {}, column.label)
    : make("button", { type: "button", click: () => onSort(column) }, column.label));
  return head;
}

function sortBy(state, column) {
  state.direction = state.column === column ? -state.direction : column.text ? 1 : -1;
  state.column = column;
}

// Redraws the headers and restores the focus.
function drawHead(row, columns, state, onSort) {
  const place = [...row.children].findIndex(head => head.contains(document.activeElement));
  row.replaceChildren(...columns.map(column => headCell(column, state, onSort)));
  if (place >= 0) row.children[place].querySelector("button")?.focus();
}

function tableFrame(label) {
  const head = make("tr"), body = make("tbody");
  const frame = make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
    make("table", {}, make("thead", {}, head), body));
  return { frame, head, body };
}

// A table that shows all its rows.  update(rows) replaces them, with the same order and filter.
function smallTable(label, columns, rows, { filter = rows.length > 8 } = {}) {
  let used = [];
  const state = { column: null, direction: 1, words: "" };
  const { frame, head, body } = tableFrame(label);
  const sort = column => { sortBy(state, column); drawHead(head, used, state, sort); draw(); };
  const show = () => {
    const filled = columns.filter(column => rows.some(row => {
      const value = valueOf(column, row);
      return value !== null && value !== undefined && value !== "";
    }));
    // Unchanged buttons are kept: a click needs the same element at press and release.
    if (filled.length !== used.length || filled.some((column, i) => column !== used[i])) drawHead(head, used = filled, state, sort);
    draw();
  };
  const draw = () => {
    const wanted = rows.filter(row => !state.words || used.some(column =>
      column.text && String(valueOf(column, row)).toLowerCase().includes(state.words)));
    if (state.column)
      wanted.sort((a, b) => compareValues(valueOf(state.column, a), valueOf(state.column, b), state.direction));
    body.replaceChildren(...wanted.map(row => make("tr", {}, used.map((column, i) => cell(column, row, i === 0)))));
  };
  show();
  const search = filter ? make("div", { class: "controls" }, make("input", {
    type: "search", placeholder: "Filter", "aria-label": "Filter: " + label,
    input: event => { state.words = event.target.value.toLowerCase(); draw(); },
  })) : null;
  return Object.assign(make("div", {}, search, frame), { update: next => { rows = next; show(); } });
}

// ---- all queries, one page at a time, from columns ----

const PAGE_ROWS = 25;

const QUERY_COLUMNS = [
  { key: "key", label: "Query", text: true, get: (q, i) => keyOf(q, i), order: (q, i) => q.index[i] + q.repeat[i] * 1e-6 },
  { key: "subject", label: "Subject", text: true, get: (q, i) => subjectOf(q, i) },
  { key: "verdict", label: "Answer", text: true, get: (q, i) => verdictOf(q, i) },
  figureColumn("joules", { get: (q, i) => withUnit(q.joules[i], unitOf("joules")), order: (q, i) => q.joules[i] }),
  { key: "plus_minus", label: "±", get: (q, i) => withUnit(q.plus_minus[i], "J", 2), order: (q, i) => q.plus_minus[i] },
  figureColumn("latency_s", { get: (q, i) => withUnit(q.latency_s[i], unitOf("latency_s")), order: (q, i) => q.latency_s[i] }),
  figureColumn("ttft_p50_s", { key: "ttft_s", get: (q, i) => withUnit(q.ttft_s[i], unitOf("ttft_p50_s")), order: (q, i) => q.ttft_s[i] }),
  figureColumn("input_tokens", { get: (q, i) => withUnit(q.input_tokens[i], ""), order: (q, i) => q.input_tokens[i] }),
  figureColumn("output_tokens", { get: (q, i) => withUnit(q.output_tokens[i], ""), order: (q, i) => q.output_tokens[i] }),
];

const QUERY_FILTERS = {
  all: ["All queries", () => true],
  right: ["Correct", flags => flags & FLAG.right],
  wrong: ["Incorrect", flags => flags & FLAG.wrong],
  unread: ["Unread", flags => flags & FLAG.unread],
  failed: ["Failed", flags => flags & FLAG.failed],
  canceled: ["Canceled", flags => flags & FLAG.canceled],
  low: ["Low confidence", flags => flags & FLAG.low],
};

// Rows that match the filter and the search words, sorted.
function pickQueries(queries, state) {
  const passes = QUERY_FILTERS[state.filter][1], words = state.words;
  const subjectHas = queries.subjects.map(subject => subject.toLowerCase().includes(words));
  let picked = new Uint32Array(queries.count), count = 0;
  for (let i = 0; i < queries.count; i++)
    if (passes(queries.flags[i]) && (!words || subjectHas[queries.subject[i]] || keyOf(queries, i).includes(words)))
      picked[count++] = i;
  picked = picked.subarray(0, count);
  if (state.column) {
    const { order, get } = state.column;
    const values = order ? Float64Array.from({ length: queries.count }, (_, i) => order(queries, i))
      : Array.from({ length: queries.count }, (_, i) => get(queries, i));
    picked.sort((a, b) => compareValues(values[a], values[b], state.direction) || a - b);
  }
  return picked;
}

// Prompt and answer, below the row of their query; only some queries have them.
function excerptRow(excerpt) {
  const part = (label, text) => text === null ? [] : [make("dt", {}, label), make("dd", {}, text || "(empty)")];
  return make("tr", { class: "excerpt" }, make("td", { colspan: QUERY_COLUMNS.length },
    make("dl", {}, part("Prompt", excerpt.problem), part("Expected", excerpt.expected), part("Answer", excerpt.answer))));
}

// A query name, which opens the excerpt if there is one.
function excerptButton(name, excerpt, open, onToggle) {
  return make("button", { type: "button", class: "opener", "aria-expanded": open ? "true" : "false", title: "Prompt and answer",
    click: event => onToggle(event.currentTarget) }, name);
}

function queryTable(run) {
  const queries = queriesOf(run);
  const excerpts = new Map(run.excerpts.map(excerpt => [excerpt.at, excerpt])), opened = new Set();
  const state = { column: null, direction: 1, filter: "all", words: "", page: 0 };
  const { frame, head, body } = tableFrame("Queries");
  const status = make("span", { class: "note", role: "status", id: "query-status" });
  let picked = pickQueries(queries, state);
  const back = make("button", { type: "button", click: () => turn(-1) }, "Previous");
  const next = make("button", { type: "button", click: () => turn(1) }, "Next");
  const draw = () => {
    const pages = Math.max(1, Math.ceil(picked.length / PAGE_ROWS));
    state.page = Math.min(Math.max(state.page, 0), pages - 1);
    const shown = picked.subarray(state.page * PAGE_ROWS, (state.page + 1) * PAGE_ROWS);
    drawHead(head, QUERY_COLUMNS, state, column => { sortBy(state, column); state.page = 0; again(); });
    body.replaceChildren(...Array.from(shown, i => rowsOf(i)).flat());
    status.textContent = plural(picked.length, "query", "queries") + ", page " + (state.page + 1) + " of " + pages;
    back.disabled = state.page === 0;
    next.disabled = state.page === pages - 1;
  };
  const nameCell = i => {
    const name = keyOf(queries, i);
    return !excerpts.has(i) ? name : excerptButton(name, excerpts.get(i), opened.has(i), button => {
      const row = button.closest("tr");
      if (opened.delete(i)) row.nextSibling.remove();
      else { opened.add(i); row.after(excerptRow(excerpts.get(i))); }
      button.setAttribute("aria-expanded", String(opened.has(i)));
    });
  };
  const rowsOf = i => [
    make("tr", {}, QUERY_COLUMNS.map(column =>
      make("td", { class: column.text ? (column.key === "subject" ? "text" : null) : "number" },
        column.key === "key" ? nameCell(i) : column.get(queries, i) || "–"))),
    opened.has(i) ? excerptRow(excerpts.get(i)) : null].filter(Boolean);
  const again = () => { picked = pickQueries(queries, state); draw(); };
  const turn = by => { state.page += by; draw(); };
  draw();
  return make("div", {},
    make("div", { class: "controls" },
      make("input", {
        type: "search", id: "query-search", placeholder: "Subject or query", "aria-label": "Filter queries by words",
        input: event => { state.words = event.target.value.toLowerCase(); state.page = 0; again(); },
      }),
      make("select", {
        id: "query-filter", "aria-label": "Filter queries by result",
        change: event => { state.filter = event.target.value; state.page = 0; again(); },
      }, Object.entries(QUERY_FILTERS).map(([name, [label]]) => make("option", { value: name }, label)))),
    frame, make("div", { class: "pager" }, back, next, status));
}

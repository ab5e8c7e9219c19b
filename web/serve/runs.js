// Runs: the searchable list, the page of one run (with the code of the report), comparisons, and sweeps.

pages.push(
  { path: /^\/runs$/, name: "Runs", href: "/runs", draw: runsPage },
  { path: /^\/runs\/(.+)$/, name: "Run", under: "/runs", draw: runPage },
  { path: /^\/compare$/, name: "Compare", under: "/runs", draw: comparePage });

// ---- the list ----

const STATES = { done: "good", running: "", interrupted: "warning" };
const stateBadge = state => state && state !== "done" ? badge((STATES[state] || "") + (state === "running" ? " running-now" : ""), state) : null;
const dateText = time => time ? time.slice(0, 16).replace("T", " ") : "–";

// Runs to compare, by id, in the order in which they were picked; the first is the baseline.
const picked = new Map();
const PICKED_MOST = 8;

const comparable = run => run.kind !== "sweep" && run.kind !== "layers";
const sweepPath = id => "/sweeps/" + encodeURIComponent(id);

const compareLink = ids => "/compare" + queryText({ run: ids });

const RUN_COLUMNS = [
  { key: "model", label: "Model", text: true }, { key: "hardware", label: "Hardware", text: true },
  figureColumn("accuracy"), figureColumn("joules_per_query", { key: "j_per_query" }), figureColumn("joules_per_output_token", { key: "j_per_output_token" }),
  figureColumn("output_tokens_per_s", { show: run => digits(run.output_tokens_per_s, 3) }), figureColumn("busy_watts", { key: "mean_power_w" }),
  figureColumn("joules", { key: "energy_j", show: run => withError(run.energy_j, run.energy_plus_minus_j, "J") }), { key: "energy_method", label: "Method", text: true },
  figureColumn("queries"), { key: "precision", label: "Precision", text: true }, { key: "dataset", label: "Dataset", text: true }, { key: "kind", label: "Kind", text: true },
  { key: "created_at", label: "Measured (UTC)", text: true, of: run => dateText(run.created_at) },
];

function pickBox(run, changed) {
  return make("input", { type: "checkbox", checked: picked.has(run.id), "aria-label": "Compare " + run.name, change: event => {
    if (event.target.checked) picked.set(run.id, run.name);
    else picked.delete(run.id);
    changed();
  } });
}

// The selected runs, and the link that compares them.
function pickedBar(bar, changed) {
  const ids = [...picked.keys()], enough = ids.length > 1 && ids.length <= PICKED_MOST;
  bar.hidden = !ids.length;
  bar.replaceChildren(
    make("span", { role: "status" }, plural(ids.length, "run") + " selected: " + listOf([...picked.values()]) + ". " + (ids.length < 2 ? "Select another to compare."
      : enough ? "The first is the baseline." : "At most " + PICKED_MOST + " can be compared.")),
    enough ? link(compareLink(ids), "Compare", { class: "button primary" }) : "",
    make("button", { type: "button", click: () => { picked.clear(); changed(); } }, "Clear"));
}

const FILTERS = [["kind", "Kind"], ["model", "Model"], ["hardware", "Hardware"], ["state", "State"]];
const LIST_ROWS = 50, SEARCH_WAIT_MS = 250, LISTED_EVERY_S = 5;

// Filter values: those listed by the server, else those seen so far.
class Facets {
  constructor() { this.seen = Object.fromEntries(FILTERS.map(([key]) => [key, new Set()])); }

  add({ runs, facets }) {
    for (const [key] of FILTERS)
      for (const value of at(facets, key) || runs.map(run => run[key])) if (value) this.seen[key].add(value);
  }

  select(key, label, value, choose) {
    const values = [...new Set([...this.seen[key], ...(value ? [value] : [])])].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    return make("label", {}, label, make("select", { id: "filter-" + key, change: event => choose(event.target.value) },
      make("option", { value: "" }, "all"), values.map(one => make("option", { value: one, selected: one === value }, one))));
  }
}

async function runsPage(view) {
  const asked = Object.fromEntries(["q", ...FILTERS.map(([key]) => key), "sort", "order", "cursor"].map(key => [key, view.query.get(key)]));
  const facets = new Facets(), before = [], { frame, head, body } = tableFrame("Runs");
  const name = { key: "name", label: "Run", text: true, view: run => make("span", { class: "pick" }, comparable(run) ? pickBox(run, drawPicked) : make("span"),
    make("span", {}, link(run.kind === "sweep" ? sweepPath(run.id) : runPath(run.id), run.name), " ", stateBadge(run.state),
      make("small", { class: "dim below narrow" }, [run.model, run.hardware].filter(Boolean).join(" · ")), run.warnings ? make("small", { class: "dim below" }, plural(run.warnings, "note")) : null)) };
  const columns = [name, ...RUN_COLUMNS], state = { column: columns.find(column => column.key === (asked.sort || "created_at")), direction: asked.order === "asc" ? 1 : -1 };
  const filters = make("div", { class: "form" }), bar = make("div", { class: "picked" }), status = make("span", { class: "note", role: "status", id: "runs-status" }), none = make("div");
  let next = null, waiting = 0, latest = 0;

  const drawPicked = () => pickedBar(bar, () => { drawPicked(); for (const box of body.querySelectorAll("input[type=checkbox]")) box.checked = picked.has(box.closest("tr").dataset.id); });
  const change = (key, value) => { asked[key] = value; asked.cursor = null; before.length = 0; load(); };
  const sort = column => {
    sortBy(state, column);
    [asked.sort, asked.order] = [column.key, state.direction > 0 ? "asc" : "desc"];
    change("cursor", null);
  };
  const turn = cursor => { asked.cursor = cursor; load(); };
  const back = make("button", { type: "button", click: () => turn(before.pop() || null) }, "Previous");
  const more = make("button", { type: "button", click: () => { before.push(asked.cursor); turn(next); } }, "Next");
  const search = make("input", { type: "search", id: "runs-search", value: asked.q || "", placeholder: "Name, model, hardware, dataset",
    input: event => { clearTimeout(waiting); waiting = setTimeout(() => change("q", event.target.value.trim()), SEARCH_WAIT_MS); } });

  const drawFilters = () => {
    const focused = document.activeElement?.id;
    filters.replaceChildren(make("label", {}, "Search", search), ...FILTERS.map(([key, label]) => facets.select(key, label, asked[key], value => change(key, value))));
    if (focused && filters.contains(document.getElementById(focused))) document.getElementById(focused).focus();
  };
  const isFiltered = () => ["q", ...FILTERS.map(([key]) => key)].some(key => asked[key]);
  const draw = found => {
    drawHead(head, columns, state, sort);
    body.replaceChildren(...found.runs.map(run => make("tr", { "data-id": run.id }, columns.map((column, i) => cell(column, run, i === 0)))));
    next = found.next_cursor;
    [back.disabled, more.disabled] = [!asked.cursor, !next];
    status.textContent = found.runs.length ? known(found.total) ? plural(found.total, "run") + (found.runs.length < found.total ? "; " + found.runs.length + " shown" : "") : plural(found.runs.length, "run") + " shown" : "";
    frame.hidden = !found.runs.length;
    none.replaceChildren(found.runs.length ? "" : isFiltered() ? emptyState("No run matches.", make("button", { type: "button", click: () => go("/runs") }, "Show all runs"))
      : emptyState("There are no runs yet.", make("span", {}, "Measure one into the folder of this server, for example ", make("code", {}, "ipw profile --client null"), ". It appears here while it runs.")));
  };
  const load = async quietly => {
    const mine = ++latest;
    if (quietly !== true) status.textContent = "Loading…";
    view.keep(asked);
    try {
      const found = await ask(view, "runs", { ...asked, limit: LIST_ROWS });
      if (mine !== latest) return; // superseded by a later request
      facets.add(found);
      drawFilters();
      draw(found);
    } catch (error) {
      if (mine === latest) none.replaceChildren(errorState(error, load));
      status.textContent = "";
    }
  };
  drawPicked();
  drawFilters();
  const list = panel("list", "Runs", filters, frame, none, make("div", { class: "pager" }, back, more, status), bar);
  frame.hidden = true;
  const [{ allow_runs }] = await Promise.all([ask(view, "status"), load()]);
  view.put(allow_runs ? await startSection(view, () => load(true)) : null, list);
  // The list is refreshed as runs change, but not while the user interacts with it.
  view.every(LISTED_EVERY_S, () => { if (!document.hidden && !list.contains(document.activeElement) && (frame.hidden || body.querySelector(".running-now"))) load(true); });
}

// ---- one run ----

const DRAWN_EVERY_S = 10, ASKED_EVERY_S = 2;

// Draws the sections of the report into a frame of this page.
function drawReport(data, into) {
  DATA = data;
  chosen = 0;
  [page.main, page.contents, page.drawn] = [into.main, into.contents, () => {}];
  drawRun();
  into.facts.replaceChildren(data.title ? make("p", { class: "subtitle" }, data.title) : "", reportFacts());
}

function reportFrame() {
  return { facts: make("div", { class: "about-run" }), contents: make("nav", { "aria-label": "Sections" }), main: make("div", { class: "sections" }) };
}

function downloads(run) {
  const base = API + "runs/" + encodeURIComponent(run.id) + "/", has = name => (run.files || []).some(file => name.test(file.name));
  return [
    has(/^records\.jsonl$|\.arrow$/) ? link(base + "records.csv", "CSV", { class: "button", download: true, "aria-label": "Download the records as CSV" }) : null,
    has(/\.arrow$/) ? link(base + "records.arrow", "Arrow", { class: "button", download: true, "aria-label": "Download the records as Arrow" }) : null,
    link(base + "page", "Report page", { class: "button", target: "_blank", rel: "noopener" }),
    make("button", { type: "button", click: event => {
      picked.set(run.id, run.name);
      event.target.textContent = "Selected to compare";
      event.target.disabled = true;
    }, disabled: picked.has(run.id) }, picked.has(run.id) ? "Selected to compare" : "Select to compare")].filter(Boolean);
}

// Figures of a run in progress, redrawn periodically.
function runningSection(run) {
  const figures = [["energy_j", "joules"], ["j_per_query", "joules_per_query"], ["j_per_output_token", "joules_per_output_token"], ["mean_power_w", "busy_watts"], ["accuracy", "accuracy"]]
    .filter(([key]) => known(run[key]));
  return section("running", "Running", null, make("p", {}, progressBar(run.progress, run.name)),
    figures.length ? make("dl", { class: "figures" }, figures.map(([key, name], i) => figure({ key, label: name === "joules" ? "Energy so far" : labelOf(name), value: run[key], text: withUnit(run[key], unitOf(name)) }, i)))
      : make("p", { class: "note" }, "Figures appear with the first completed queries."));
}

async function runPage(view, id) {
  const path = "runs/" + encodeURIComponent(id), running = make("div"), into = reportFrame();
  let run = await ask(view, path), drawnAt = 0;
  const drawTop = () => {
    view.title(run.name || id, make("div", { class: "buttons" }, stateBadge(run.state), downloads(run)));
    running.replaceChildren(run.state === "running" ? runningSection(run) : "");
    running.hidden = run.state !== "running";
  };
  const drawBelow = async () => {
    drawnAt = Date.now();
    try {
      const data = await ask(view, path + "/report");
      for (const one of data.runs) one.files = (run.files || []).map(file => ({ ...file, href: file.url })); // in a report they are relative paths
      drawReport(data, into);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      into.main.replaceChildren(run.state === "running" ? make("p", { class: "state" }, "The report appears with the first completed queries.") : errorState(error, drawBelow));
    }
  };
  drawTop();
  into.main.append(loading());
  view.put(into.facts, running, into.contents, into.main);
  await drawBelow();
  if (run.state !== "running") return;
  view.every(ASKED_EVERY_S, async () => {
    if (document.hidden || run.state !== "running") return;
    const was = at(run, "progress", "done");
    run = await ask(view, path).catch(() => run);
    if (run.state !== "running") drawTop();
    else running.replaceChildren(runningSection(run));
    // Not while an element in it has the focus, which would be lost.
    const changed = (!run.progress || run.progress.done !== was) && Date.now() - drawnAt > 1000 * DRAWN_EVERY_S && !into.main.contains(document.activeElement);
    if (run.state !== "running" || changed) await drawBelow();
  });
}

// ---- comparison ----

const VERDICT_METRICS = ["energy_per_query", "energy_per_output_token", "accuracy", "latency", "tokens_per_s"];

// "qwen-7b: energy per query lower in this run by 9 %; one run a side: not decided; worse in latency (+12.3 %)."
function verdictText(one) {
  const first = one.metrics.energy_per_query, isStated = known(first.difference) && first.verdict !== "no evidence";
  const found = VERDICT_METRICS.map(name => [name, one.metrics[name]]).filter(([, metric]) => metric && known(metric.difference) && !(isStated && metric === first));
  const said = (verdict, word) => {
    const those = found.filter(([, metric]) => metric.verdict === verdict);
    return those.length ? word + " " + those.map(([name, metric]) => metric.label.toLowerCase().replace("ipj", "IPJ") + (verdict === "no evidence" ? "" : " (" + differenceOf(name, metric) + ")")).join(", ") : null;
  };
  const parts = [isStated ? "energy per query " + first.statement : null, said("better", "better in"), said("worse", "worse in"), said("not decided", "not decided:"),
    said("not comparable", "not comparable:"), said("no evidence", "no evidence of a difference in")].filter(Boolean);
  return make("li", {}, make("b", {}, sideName(one)), ": " + (parts.length ? parts.join("; ") : "nothing that both runs have can be compared") + ".");
}

async function comparePage(view) {
  const ids = view.query.getAll("run");
  view.title("Compare", ids.length ? link("/runs", "Select runs", { class: "button" }) : null);
  if (ids.length < 2)
    return view.put(panel("verdict", "Compare", emptyState("Select two runs or more.", make("span", {}, "Tick them in the list of ", link("/runs", "runs"), "; the first is the baseline."))));
  for (const id of ids) if (!picked.has(id)) picked.set(id, id.split("/").pop());
  const all = await ask(view, "compare", { run: ids });
  DATA = null;
  const swap = ids.length === 2 ? link(compareLink([ids[1], ids[0]]), "Swap baseline", { class: "button" }) : null;
  const runs = make("p", { class: "note" }, "Runs: ", ids.flatMap((id, i) => [i ? ", " : "", link(runPath(id), id), i ? "" : " (baseline)"]), ".");
  view.put(section("verdict", "Verdict", null, make("ul", { class: "verdicts answer" }, all.comparisons.map(verdictText)), runs, swap), comparisonSection(all));
}

// ---- sweeps ----

pages.push({ path: /^\/sweeps$/, name: "Sweeps", href: "/sweeps", draw: sweepsPage }, { path: /^\/sweeps\/(.+)$/, name: "Sweep", under: "/sweeps", draw: sweepPage });

async function sweepsPage(view) {
  const { sweeps } = await ask(view, "sweeps");
  if (!sweeps.length)
    return view.put(panel("sweeps", "Sweeps", emptyState("There are no sweeps yet.", make("span", {}, "A sweep measures a command or a profile at every setting of its knobs: ", make("code", {}, "ipw sweep"), "."))));
  view.put(panel("sweeps", "Sweeps", smallTable("Sweeps", [
    { label: "Sweep", text: true, of: sweep => sweep.name, view: sweep => link(sweepPath(sweep.id), sweep.name) },
    { key: "optimum", label: "Least energy", text: true },
    { key: "saving_pct", label: "Saves", show: sweep => known(sweep.saving_pct) ? withError(sweep.saving_pct / 100, sweep.saving_plus_minus_pct / 100, "%") : "–" },
    { key: "conclusion", label: "Result", text: true, wide: true }, { key: "settings", label: "Settings", unit: "" }, { key: "attempts", label: "Attempts", unit: "" }, { key: "failed", label: "Failed", unit: "" },
    { label: "Measured (UTC)", text: true, of: sweep => dateText(sweep.created_at) },
  ], sweeps)));
}

async function sweepPage(view, id) {
  const found = await ask(view, "sweeps/" + encodeURIComponent(id)), into = reportFrame();
  view.title("Sweep " + (found.name || id));
  view.put(into.facts, into.main);
  drawReport({ left_out: [], runs: [], names: [], settings: [], sweeps: [found], layers: [], across: null, comparison: null }, into);
}

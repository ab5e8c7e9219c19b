// Estimate: predicted energy, latency and cost of a model on hardware, by `ipw estimate`.

pages.push({ path: /^\/estimate$/, name: "Estimate", href: "/estimate", draw: estimatePage });

const PRECISIONS = ["fp32", "fp16", "bf16", "fp8", "int8", "int4"];

// ---- the form ----

const field = (label, control) => make("label", {}, label, control);
const numberField = (name, label, value, fallback) => field(label, make("input", { type: "number", id: name, name, min: 1, step: 1, inputmode: "numeric", value, placeholder: fallback }));
const priceField = (name, label, value) => field(label, make("input", { type: "number", id: name, name, min: 0, step: "any", inputmode: "decimal", value, placeholder: "none" }));
const namedOption = (id, name, chosen) => make("option", { value: id, selected: id === chosen }, name && name !== id ? name + " (" + id + ")" : id);

function estimateForm(asked, models, hardware) {
  const form = make("form", { class: "form", id: "estimate-form", submit: event => {
    event.preventDefault();
    go("/estimate" + queryText(Object.fromEntries(new FormData(form))));
  } },
  field("Model", make("select", { id: "model", name: "model", required: true }, make("option", { value: "" }, "select a model"), models.map(model => namedOption(model.id, model.name, asked.model)))),
  field("Hardware", make("select", { id: "hardware", name: "hardware", required: true }, make("option", { value: "" }, "select hardware"), hardware.map(device => namedOption(device.id, device.name, asked.hardware)))),
  field("Precision", make("select", { id: "precision", name: "precision" }, make("option", { value: "" }, "default"), PRECISIONS.map(name => make("option", { value: name, selected: name === asked.precision }, name)))),
  numberField("batch", "Batch", asked.batch, "1"), numberField("input_tokens", "Prompt tokens", asked.input_tokens, "512"), numberField("output_tokens", "Output tokens", asked.output_tokens, "128"),
  priceField("price_per_kwh", "Price per kWh", asked.price_per_kwh), priceField("device_price_per_hour", "Device price per hour", asked.device_price_per_hour), priceField("gco2_per_kwh", "gCO2e per kWh", asked.gco2_per_kwh),
  make("button", { type: "submit", class: "primary" }, "Estimate"));
  return form;
}

// ---- the answer ----

const ENERGY_PARTS = [["compute", "Compute", "c1"], ["memory", "Memory traffic", "c3"], ["static", "Static (idle power)", "c6"], ["link", "Links", "c4"]];

function partsBar(energy) {
  const parts = ENERGY_PARTS.filter(([key]) => energy[key] > 0), share = key => energy[key] / energy.total;
  return [make("div", { class: "shares", role: "img", "aria-label": parts.map(([key, label]) => label + " " + withUnit(share(key), "%")).join(", ") },
    parts.map(([key, , paint]) => make("span", { style: "flex:" + share(key) + " 1 0;background:var(--" + paint + ")" }))),
  make("ul", { class: "keys" }, parts.map(([key, label, paint]) => make("li", {}, make("i", { style: "background:var(--" + paint + ")" }), label + " " + withUnit(energy[key], "J") + " (" + withUnit(share(key), "%") + ")")))];
}

function estimateFigures(found) {
  const { each, power_w, memory_bytes, request, operating } = found, per = request ? "request" : each.unit, item = (key, label, value, text, note) => known(value) ? { key, label, value, text, note } : null;
  return make("dl", { class: "figures" }, [
    item("energy", "Energy in total", found.energy_j.total, withError(found.energy_j.total, found.energy_j.plus_minus, "J")),
    item("each", "Energy per " + each.unit, each.energy_j, withError(each.energy_j, each.plus_minus, "J")),
    item("latency", "Latency", found.latency_s, withError(found.latency_s, found.latency_plus_minus, "s")),
    item("ttft", "Time to first token", at(request, "first_token_s"), withUnit(at(request, "first_token_s"), "s")),
    item("per_s", "Throughput", each.per_s, digits(each.per_s) + (/token/.test(each.unit) ? " tok/s" : " " + each.unit + "s/s")),
    item("power", "Mean power", power_w.average, withError(power_w.average, power_w.plus_minus, "W"), "limit " + withUnit(power_w.limit, "W") + ", idle " + withUnit(power_w.idle, "W")),
    item("memory", "Peak memory", memory_bytes.total_peak, withUnit(memory_bytes.total_peak, "B"), "of " + withUnit(memory_bytes.capacity, "B", 3)),
    item("cost", "Cost per " + per, at(operating, "cost_per_query"), withError(at(operating, "cost_per_query"), at(operating, "cost_per_query_plus_minus"), "currency"), "in the currency of the prices"),
    item("cost_million", "Cost per million output tokens", at(operating, "cost_per_million_output_tokens"), withError(at(operating, "cost_per_million_output_tokens"), at(operating, "cost_per_million_output_tokens_plus_minus"), "currency")),
    item("emissions", "Emissions per " + per, at(operating, "gco2e_per_query"), withError(at(operating, "gco2e_per_query"), at(operating, "gco2e_per_query_plus_minus"), "g"), "CO2 equivalent of electricity"),
    item("mfu", "MFU", found.mfu, withUnit(found.mfu, "%"), "of the peak FLOP/s"), item("mbu", "MBU", found.mbu, withUnit(found.mbu, "%"), "of the peak memory bandwidth"),
  ].filter(Boolean).map(figure));
}

function phaseTable(found) {
  const phases = at(found, "request", "phases") || [];
  return phases.length ? make("div", {}, make("h3", { class: "spaced" }, "Phases"), smallTable("Phases", [
    { key: "phase", label: "Phase", text: true }, { key: "tokens", label: "Tokens", unit: "" },
    { label: "Energy", of: row => row.energy_j.total, show: row => withError(row.energy_j.total, row.energy_j.plus_minus, "J") }, { key: "energy_per_token_j", label: "Per token", unit: "J" },
    { key: "latency_s", label: "Time", show: row => withError(row.latency_s, row.latency_plus_minus, "s") }, { label: "Mean power", unit: "W", of: row => row.power_w.average },
    { label: "Compute", unit: "J", of: row => row.energy_j.compute }, { label: "Memory", unit: "J", of: row => row.energy_j.memory }, { label: "Static", unit: "J", of: row => row.energy_j.static },
    { key: "mfu", label: "MFU", unit: "%" }, { key: "mbu", label: "MBU", unit: "%" },
  ], phases, { filter: false })) : null;
}

function adviceTable(found) {
  const rows = found.recommendations || [];
  return rows.length ? make("div", {}, make("h3", { class: "spaced" }, "How to save energy"), smallTable("How to save energy", [
    { key: "options", label: "Option", text: true }, { key: "saving", label: "Saving", show: row => withError(row.saving, row.saving_plus_minus, "%") },
    { key: "energy_j", label: "Energy per " + found.each.unit, unit: "J" }, { key: "latency_s", label: "Latency", unit: "s" }, { key: "memory_bytes", label: "Memory", unit: "B" }, { key: "note", label: "Note", text: true },
  ], rows, { filter: false })) : null;
}

const KERNELS_SHOWN = 20;

function kernelTable(found) {
  const rows = (found.subgraphs || []).slice().sort((a, b) => b.energy_j - a.energy_j).slice(0, KERNELS_SHOWN);
  return rows.length ? make("details", { class: "fold" }, make("summary", {}, "The " + rows.length + " kernels with the most energy, of " + found.subgraphs.length), smallTable("Kernels", [
    { key: "name", label: "Kernel", text: true }, { key: "phase", label: "Phase", text: true }, { key: "energy_j", label: "Energy", unit: "J" }, { label: "Share", unit: "%", of: row => row.energy_j / found.energy_j.total },
    { key: "latency_s", label: "Time", unit: "s" }, { key: "bound", label: "Bound by", text: true },
  ], rows, { filter: false })) : null;
}

function estimateSections(found) {
  const each = found.each, setting = found.setting;
  return [section("estimated", "Estimate", null,
    make("p", { class: "answer" }, make("b", {}, withError(each.energy_j, each.plus_minus, "J") + " per " + each.unit), " for " + found.model + " on " + found.hardware_name + " (" + found.precision + ", batch " + found.batch
      + (known(setting.output_tokens) ? ", " + plural(setting.prompt_tokens, "prompt token") + ", " + plural(setting.output_tokens, "output token") : "") + "). ",
    badge("warning", "estimated, not measured"), " ", badge("", found.confidence)),
    found.fits === false ? make("p", { class: "alert bad" }, make("strong", {}, "It does not fit. "), "The model needs " + withUnit(found.memory_bytes.total_peak, "B", 3) + " of the device's " + withUnit(found.memory_bytes.capacity, "B", 3) + ".") : null,
    estimateFigures(found),
    make("p", { class: "note after" }, sentence("± is the half-width of the interval of models as shipped; " + found.basis + "; " + found.confidence_reason))),
  section("breakdown", "Where the energy goes", null, partsBar(found.energy_j), phaseTable(found), adviceTable(found), kernelTable(found))];
}

async function estimatePage(view) {
  const asked = Object.fromEntries(["model", "hardware", "precision", "batch", "input_tokens", "output_tokens", "price_per_kwh", "device_price_per_hour", "gco2_per_kwh"].map(key => [key, view.query.get(key)]));
  const [{ models }, { hardware }] = await Promise.all([ask(view, "models"), ask(view, "hardware")]);
  const form = section("form", "Model and hardware", null, estimateForm(asked, models, hardware));
  if (!asked.model || !asked.hardware)
    return view.put(form, section("estimated", "Estimate", null, emptyState("Select a model and hardware.", "Energy, latency and memory are predicted; nothing is measured or run.")));
  try {
    view.put(estimateSections(await ask(view, "estimate", asked)), form);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    view.put(errorState(error, show), form);
  }
}

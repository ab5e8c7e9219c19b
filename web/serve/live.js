// Live: the current power of this machine, and the health of its sensors.

pages.push({ path: /^\/$/, name: "Live", href: "/", draw: livePage });

const RANGES = [[60, "1 minute"], [600, "10 minutes"], [3600, "1 hour"]];
const SPARK_SECONDS = 60, STALE_SECONDS = 5, ANNOUNCE_SECONDS = 30;

// ---- samples ----

// Power of each device over the last seconds, from the server's history and then from the stream.
class PowerHistory {
  constructor() { this.devices = new Map(); }

  fill({ devices }) {
    this.devices = new Map((devices || []).map(({ id, t, power_w }) => [id, t.map((time, i) => [time, power_w[i]])]));
  }

  add(sample, seconds) {
    const time = Date.parse(sample.time) / 1000;
    for (const { id, power_w } of sample.devices) {
      const points = this.devices.get(id) || [];
      if (!points.length || time > points.at(-1)[0]) points.push([time, power_w]);
      while (points.length && points[0][0] < time - seconds) points.shift();
      this.devices.set(id, points);
    }
  }

  since(id, seconds) {
    const points = this.devices.get(id) || [], from = (points.at(-1)?.[0] ?? 0) - seconds;
    return points.filter(([time]) => time >= from);
  }
}

// The stream of samples.  It is reopened after a failure, with increasing delays; `lost` is called then, and `resume`
// when the page becomes visible again.
function follow(view, take, lost, resume) {
  let source = null, timer = 0, wait_ms = 1000;
  const close = () => { clearTimeout(timer); source?.close(); };
  const open = () => {
    close();
    source = new EventSource(API + "live/stream");
    source.addEventListener("sample", event => { wait_ms = 1000; take(JSON.parse(event.data)); });
    source.addEventListener("error", () => {
      lost();
      if (source.readyState !== EventSource.CLOSED) return; // the browser reconnects by itself
      timer = setTimeout(open, wait_ms);
      wait_ms = Math.min(30000, 2 * wait_ms);
    });
  };
  // A hidden page makes no requests.
  const look = () => {
    if (document.hidden) return close();
    resume();
    open();
  };
  document.addEventListener("visibilitychange", look);
  view.signal.addEventListener("abort", () => { document.removeEventListener("visibilitychange", look); close(); });
  open();
}

// ---- the headline ----

const listed = devices => listOf(devices.map(device => device.id));

// Devices whose power is known, or was.
const meteredOf = ({ devices }) => devices.filter(device => known(device.power_w) || device.health !== "ok");

// Reliability of the total: missing readings first.
function trustOf(sample) {
  const metered = meteredOf(sample);
  const lost = metered.filter(device => device.health === "lost"), stale = metered.filter(device => device.health === "stale");
  const modeled = metered.filter(device => device.health === "ok" && device.method === "estimated");
  const parts = [];
  if (lost.length) parts.push("no reading from " + listed(lost) + ": not in the total");
  if (stale.length) parts.push("the last reading of " + listed(stale) + " is old");
  if (modeled.length) parts.push("estimated by a model, not measured" + (modeled.length === metered.length ? "" : ": " + listed(modeled)));
  return { kind: lost.length || stale.length ? "bad" : modeled.length ? "warning" : "good", isModel: modeled.length > 0 && modeled.length === metered.length,
    text: parts.length ? sentence(parts.join("; ")) : "Measured by " + plural(metered.length, "sensor") + (metered.length === 1 ? ", up to date." : ", all up to date.") };
}

const TRUST_WORDS = { good: "measured", warning: "estimated in part", bad: "incomplete" };

function nowText(sample) {
  const trust = trustOf(sample), total = at(sample, "totals", "power_w");
  const watts = trust.isModel ? "~" + withUnit(total, "W", 2) : withUnit(total, "W");
  return make("p", { class: "answer" }, make("b", {}, known(total) ? watts : "unknown"),
    " drawn now" + (sample.devices.length === 1 ? " by " + (sample.devices[0].name || sample.devices[0].id) : "") + ". ", badge(trust.kind, trust.kind === "warning" && trust.isModel ? "estimated" : TRUST_WORDS[trust.kind]), " " + trust.text);
}

// Utilization and memory of the host.
function hostText({ host }) {
  const parts = [known(at(host, "utilization_pct")) && "CPU " + withUnit(host.utilization_pct / 100, "%") + " busy", known(at(host, "memory_used_bytes")) && withUnit(host.memory_used_bytes, "B", 3) + " of memory used"].filter(Boolean);
  return parts.length ? make("p", { class: "note" }, sentence(parts.join(", "))) : "";
}

// ---- devices ----

const SVG = "http://www.w3.org/2000/svg", SPARK_WIDTH = 96, SPARK_HEIGHT = 24;

// A line without axes; its text is the range.
function sparkline(points, label) {
  const values = points.map(point => point[1]).filter(known), svg = document.createElementNS(SVG, "svg"), line = document.createElementNS(SVG, "path");
  const low = Math.min(...values, Infinity), high = Math.max(...values, -Infinity), last = points.at(-1)?.[0] ?? 0;
  const x = time => SPARK_WIDTH * (1 - (last - time) / SPARK_SECONDS), y = value => SPARK_HEIGHT - 2 - (high > low ? (value - low) / (high - low) : 0.5) * (SPARK_HEIGHT - 4);
  let path = "", down = false;
  for (const [time, value] of points) {
    if (known(value)) path += (down ? "L" : "M") + x(time).toFixed(1) + " " + y(value).toFixed(1);
    down = known(value); // gaps are not bridged
  }
  svg.setAttribute("class", "spark");
  svg.setAttribute("viewBox", `0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", values.length ? label + ": " + withUnit(low, "W", 3) + " to " + withUnit(high, "W", 3) + " in the last minute" : label + ": no readings");
  line.setAttribute("d", path);
  svg.append(line);
  return svg;
}

const HEALTH = { ok: "good", stale: "warning", lost: "bad" };

function deviceColumns(power) {
  return [
    { label: "Device", text: true, of: device => device.id, view: device => make("span", {}, device.id, device.name && device.name !== device.id ? make("small", { class: "dim below" }, device.name) : null) },
    { key: "power_w", label: "Power", unit: "W", show: device => known(device.power_w) ? withUnit(device.power_w, "W") : "unknown" },
    { label: "Last minute", text: true, fixed: true, of: device => device.id, view: device => sparkline(power.since(device.id, SPARK_SECONDS), device.id) },
    { key: "energy_j", label: "Energy", show: device => withError(device.energy_j, device.energy_plus_minus_j, "J") },
    { label: "Sensor", text: true, of: device => device.health, view: device => make("span", {}, badge(HEALTH[device.health] || "", device.health),
      device.health !== "ok" && known(device.age_s) ? " for " + withUnit(device.age_s, "s", 2) : null) },
    { label: "In total", text: true, of: device => device.counted === undefined ? "" : device.counted && known(device.power_w) ? "yes" : "no" }, { key: "method", label: "Method", text: true },
    { key: "utilization_pct", label: "Utilization", show: device => known(device.utilization_pct) ? withUnit(device.utilization_pct / 100, "%") : "–" },
    { key: "memory_used_bytes", label: "Memory used", unit: "B" },
    { key: "temperature_c", label: "Temperature", show: device => known(device.temperature_c) ? digits(device.temperature_c, 3) + " °C" : "–" },
    { key: "clock_mhz", label: "Clock", show: device => known(device.clock_mhz) ? digits(device.clock_mhz) + " MHz" : "–" },
    { key: "source", label: "Source", text: true },
  ];
}

// ---- the chart ----

function powerOption(power, seconds) {
  const ids = [...power.devices.keys()], rows = ids.map(id => power.since(id, seconds));
  const last = Math.max(...rows.map(points => points.at(-1)?.[0] ?? 0));
  return {
    ...baseOption(),
    grid: { left: 8, right: 20, top: 34, bottom: 6, containLabel: true },
    legend: { top: 0, left: 0, type: "scroll", icon: "roundRect", itemWidth: 14, itemHeight: 5, textStyle: { color: color("ink") }, data: ids },
    xAxis: axis({ type: "time", min: 1000 * (last - seconds), max: 1000 * last, splitLine: { show: false } }),
    yAxis: unitAxis("W", { type: "value", splitNumber: 4 }, Math.max(...rows.flat().map(point => point[1] || 0))),
    tooltip: { ...baseOption().tooltip, trigger: "axis", formatter: params => tip(new Date(params[0].axisValue).toLocaleTimeString(), params.map(point => [point.seriesName, withUnit(point.value[1], "W")])) },
    series: ids.map((name, i) => ({ type: "line", name, symbol: "none", data: rows[i].map(([time, value]) => [1000 * time, value]),
      lineStyle: { width: 1.6, color: seriesColor(i), type: i < SERIES_COLORS.length ? "solid" : [5, 4] }, itemStyle: { color: seriesColor(i) }, emphasis: { disabled: true } })),
  };
}

// ---- running profiles ----

const duration = seconds => !known(seconds) ? "unknown" : seconds < 90 ? withUnit(seconds, "s", 2) : seconds < 5400 ? Math.round(seconds / 60) + " min" : digits(seconds / 3600, 2) + " h";

// Also on the page of a run.
function progressBar(progress, name) {
  if (!progress) return make("span", { class: "note" }, "progress unknown");
  const { done, total, failed, elapsed_s, eta_s } = progress;
  return make("span", { class: "progress" },
    make("progress", { "aria-label": "Progress of " + name, ...(known(total) && total > 0 ? { value: done, max: total } : {}) }),
    make("span", { class: "note" }, withUnit(done, "") + (known(total) ? " of " + withUnit(total, "") : "") + " queries"
      + (failed ? ", " + withUnit(failed, "") + " failed" : "") + (known(eta_s) ? ", " + duration(eta_s) + " left" : known(elapsed_s) ? " in " + duration(elapsed_s) : "")));
}

function runningList(running) {
  return running.length ? make("ul", { class: "running" }, running.map(run => make("li", {}, link(runPath(run.id), run.name), make("span", { class: "dim" }, run.kind), progressBar(run.progress, run.name))))
    : make("p", { class: "note" }, "No profile is running.");
}

// ---- the page ----

function noSensors(missing) {
  return section("now", "Now", null, emptyState("No device here reports its power.", missing ? sentence(missing) : null,
    make("span", {}, "The ", link("/sensors", "sensors page"), " says why, and how to enable the sensors of this machine. Runs that were measured elsewhere are under ", link("/runs", "Runs"), ".")));
}

async function livePage(view) {
  const power = new PowerHistory(), state = { seconds: 600, sample: null, taken: 0, announced: 0, health: "" };
  const fill = async () => power.fill(await ask(view, "live/history", { seconds: state.seconds }));
  [state.sample] = await Promise.all([ask(view, "live"), fill()]);
  if (!meteredOf(state.sample).length) {
    view.put(noSensors(state.sample.missing), section("running", "Running", null, runningList(state.sample.running)));
    return follow(view, sample => { if (meteredOf(sample).length) show(); }, () => {}, () => {}); // there may be no reading yet
  }

  const said = make("div"), connection = make("p", { class: "alert", role: "status", hidden: true }), spoken = make("p", { class: "unseen", "aria-live": "polite" });
  const table = smallTable("Devices", deviceColumns(power), state.sample.devices, { filter: false }), running = make("div");
  const chart = chartElement("Power over time", () => powerOption(power, state.seconds));
  const range = make("select", { id: "range", "aria-label": "Time shown", change: async event => { state.seconds = Number(event.target.value); await fill(); draw(); } },
    RANGES.map(([seconds, name]) => make("option", { value: seconds, selected: seconds === state.seconds }, name)));

  // Screen readers are updated occasionally, and when the health of a sensor changes, not every second.
  const announce = now => {
    const trust = trustOf(state.sample);
    if (trust.text === state.health && now - state.announced < 1000 * ANNOUNCE_SECONDS) return;
    [state.health, state.announced] = [trust.text, now];
    spoken.textContent = withUnit(at(state.sample, "totals", "power_w"), "W", 3) + ". " + trust.text;
    chart.setAttribute("aria-label", "Power over time. " + state.sample.devices.map(device => sparkline(power.since(device.id, SPARK_SECONDS), device.id).getAttribute("aria-label")).join("; "));
  };
  const draw = () => {
    said.replaceChildren(nowText(state.sample), hostText(state.sample));
    table.update(state.sample.devices);
    running.replaceChildren(runningList(state.sample.running));
    redrawChart(chart);
    announce(Date.now());
  };
  const lost = () => {
    connection.hidden = false;
    connection.textContent = "Connection lost: these figures are of " + new Date(state.sample.time).toLocaleTimeString() + ". Connecting again…";
    said.classList.add("old");
  };
  const take = sample => {
    [state.sample, state.taken] = [sample, Date.now()];
    power.add(sample, Math.max(state.seconds, SPARK_SECONDS));
    connection.hidden = true;
    said.classList.remove("old");
    draw();
  };
  view.put(
    section("now", "Now", null, connection, said, table, spoken,
      make("p", { class: "note after" }, "Energy is counted since the server started; a device that another one includes is not in the total. A sensor is ok, stale (its last reading is old) or lost (no reading).")),
    section("history", "Power over time", null, make("div", { class: "controls" }, range), chart),
    section("running", "Running", null, running));
  draw();
  follow(view, take, lost, fill);
  view.every(1, () => { if (state.taken && !document.hidden && Date.now() - state.taken > 1000 * STALE_SECONDS) lost(); });
}

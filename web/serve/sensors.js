// Sensors: their status, why some do not work, and how to fix it.

pages.push({ path: /^\/sensors$/, name: "Sensors", href: "/sensors", draw: sensorsPage });

const STATUS = { ok: "good", estimated: "warning", denied: "bad", dead: "bad", absent: "" };

function sensorsAnswer({ sensors }) {
  const works = sensors.filter(sensor => sensor.status === "ok" && (sensor.measures || []).some(what => /energy|power/.test(what))), modeled = sensors.filter(sensor => sensor.status === "estimated");
  const fixable = sensors.filter(sensor => sensor.fix);
  return make("p", { class: "answer" }, works.length ? "Energy is measured by " + listOf(works.map(sensor => sensor.id), 6) + ". " : "No sensor here measures energy. ",
    modeled.length ? "Estimated by a model, not measured: " + listOf(modeled.map(sensor => sensor.id)) + ". " : "", fixable.length ? plural(fixable.length, "sensor") + " can be enabled: see How to fix." : "");
}

async function sensorsPage(view) {
  view.title("Sensors of this machine");
  const found = await ask(view, "sensors"), order = ["ok", "estimated", "denied", "dead"];
  const rank = sensor => order.includes(sensor.status) ? order.indexOf(sensor.status) : order.length;
  const rows = found.sensors.slice().sort((a, b) => rank(a) - rank(b));
  if (!rows.length) return view.put(panel("sensors", "Sensors", emptyState("This server reads no sensors.", "It was started without them.")));
  view.put(panel("sensors", "Sensors", sensorsAnswer(found), smallTable("Sensors", [
    { label: "Sensor", text: true, of: sensor => sensor.id, view: sensor => make("span", {}, sensor.id, sensor.name ? make("small", { class: "dim below" }, sensor.name) : null) },
    { label: "Status", text: true, of: sensor => sensor.status, view: sensor => badge(STATUS[sensor.status] || "", sensor.status) },
    { key: "power_w", label: "Power", unit: "W" }, { label: "Measures", text: true, of: sensor => (sensor.measures || []).map(what => what.replaceAll("_", " ")).join(", ") },
    { label: "Updates every", unit: "s", of: sensor => known(sensor.period_ms) ? sensor.period_ms / 1000 : null }, { label: "Cost of a read", unit: "s", of: sensor => known(sensor.read_us) ? sensor.read_us / 1e6 : null },
    { key: "reason", label: "Why", text: true, wide: true }, { key: "fix", label: "How to fix", text: true, wide: true },
  ], rows, { filter: rows.length > 12 })));
}

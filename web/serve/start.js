// Starting a profile from the page of runs, if the server allows it (--allow-runs).

const STARTED_EVERY_S = 2, LOOKS_AFTER = 2, LOCAL_ADDRESS = { openai: "http://127.0.0.1:8000/v1", ollama: "http://127.0.0.1:11434" };
const STARTED_WORDS = { running: "is running", stopping: "is stopping", done: "is done", stopped: "was stopped", failed: "failed" };

// The form as a request body: numbers as numbers; empty fields are omitted.
function askedProfile(form) {
  const asked = {};
  for (const control of form.querySelectorAll("[name]")) {
    const value = control.value.trim();
    if (value) asked[control.name] = control.type === "number" ? Number(value) : value;
  }
  return asked;
}

function startForm(choices, start) {
  const address = make("input", { type: "url", id: "base_url", name: "base_url", placeholder: LOCAL_ADDRESS.openai, maxlength: 500 });
  const form = make("form", { class: "form", id: "start-form", submit: event => {
    event.preventDefault();
    start(askedProfile(form));
  } },
  field("Client", make("select", { id: "client", name: "client", change: event => {
    address.placeholder = LOCAL_ADDRESS[event.target.value] || "none";
    address.disabled = event.target.value === "null";
    if (address.disabled) address.value = "";
  } }, choices.client.map(name => make("option", { value: name }, name)))),
  field("Address of the service", address),
  field("Model", make("input", { type: "text", id: "model", name: "model", required: true, maxlength: 200 })),
  field("Dataset", make("select", { id: "dataset", name: "dataset" }, choices.dataset.map(name => make("option", { value: name }, name)))),
  numberField("max_queries", "Queries", 100, "all"), numberField("concurrency", "Concurrency", null, "1"), numberField("max_tokens", "Max. output tokens", null, "no limit"),
  make("button", { type: "submit", class: "primary" }, "Start"));
  return form;
}

// The row of the run, with its progress while it runs; null before it has begun.
async function startedRun(view, id, alive) {
  try {
    const row = (await ask(view, "runs", { q: id, limit: 1 })).runs.find(one => one.id === id);
    return row && alive ? await ask(view, "runs/" + encodeURIComponent(id)) : row || null;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return null;
  }
}

// The section, which polls the state of the run while the page is shown; `changed` is called when one begins or ends.
async function startSection(view, changed) {
  let started = await ask(view, "current"), looks = 0; // after its end: the list is updated a moment later
  const state = make("div", { id: "started", role: "status" }), alive = () => ["running", "stopping"].includes(started.state);
  const form = startForm(started.choices, asked => send("runs", { method: "POST", body: JSON.stringify(asked) }));
  const fold = make("details", { class: "fold" }, make("summary", {}, "Start a profile"), form);

  const send = async (path, sent) => {
    try {
      started = await ask(view, path, null, sent);
      await draw();
      changed();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      state.replaceChildren(make("p", { class: "alert bad", role: "alert" }, make("strong", {}, "Refused. "), error.message + "."));
    }
  };
  const draw = async () => {
    form.querySelector("[type=submit]").disabled = alive();
    if (!started.id) return;
    const run = await startedRun(view, started.id, alive());
    state.replaceChildren(make("p", { class: started.state === "failed" ? "alert bad" : "" },
      run ? link(runPath(started.id), started.id) : started.id, " " + STARTED_WORDS[started.state] + (started.state === "failed" ? " with exit status " + started.exit_code : "") + ". ",
      alive() && run ? progressBar(run.progress, started.id) : "",
      alive() ? make("button", { type: "button", id: "stop", click: () => send("current", { method: "DELETE" }) }, started.state === "stopping" ? "Abort queries in flight" : "Stop") : ""),
    started.message ? make("pre", {}, started.message) : "");
    looks = alive() ? LOOKS_AFTER : looks - 1;
  };
  await draw();
  view.every(STARTED_EVERY_S, async () => {
    if (looks <= 0 || document.hidden) return;
    started = await ask(view, "current").catch(() => started);
    const focused = document.activeElement?.id;
    await draw();
    if (focused === "stop") document.getElementById("stop")?.focus();
    if (!alive()) changed();
  });
  return panel("start", "Start a profile", fold, state);
}

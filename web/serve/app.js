// The frame of the dashboard.  The URL path selects the page; a page queries the API and draws into <main>.
// Each file of pages adds its own to `pages`.

// {path: regular expression, name and href: of its link in the bar, or `under`: the link that it belongs to; draw(view, groups of the path)}
const pages = [];

// ---- the chosen theme is stored ----

try {
  theme.chosen = localStorage.getItem("theme");
  theme.apply();
} catch { /* storage is disabled: the system's theme is used */ }
theme.listeners.push(() => {
  try {
    if (theme.chosen) localStorage.setItem("theme", theme.chosen);
  } catch { /* as above */ }
});

// ---- the API ----

const API = "/api/v1/";

// "?a=1&b=2&b=3"; a list repeats its name; unknown and empty values are omitted.
function queryText(parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters || {}))
    for (const one of [value].flat())
      if (one !== null && one !== undefined && one !== "") query.append(name, one);
  const text = query.toString();
  return text ? "?" + text : "";
}

class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const forever = () => new Promise(() => {});

// The response as an object.  Without a session, redirects to the login page.  `sent`: {method, body} of requests that
// change state.
async function ask(view, path, parameters, sent) {
  let answer;
  try {
    answer = await fetch(API + path + queryText(parameters), { signal: view.signal, ...sent, headers: { accept: "application/json", ...(sent?.body ? { "content-type": "application/json" } : {}) } });
  } catch (error) {
    if (view.signal.aborted) return forever(); // the page was left
    throw new ApiError(0, "The server does not respond: it has stopped, or the network is down.");
  }
  if (answer.status === 401) {
    location.assign("/login" + queryText({ next: address() }));
    return forever();
  }
  const body = await answer.json().catch(() => null);
  if (view.signal.aborted) return forever();
  if (!answer.ok || body === null) throw new ApiError(answer.status, at(body, "error", "message") || "HTTP status " + answer.status);
  return body;
}

const runPath = id => "/runs/" + encodeURIComponent(id);
const link = (href, text, attributes) => make("a", { href, ...attributes }, text);

// ---- states ----

const loading = () => make("p", { class: "state", role: "status" }, "Loading…");

// A section whose title is that of the page.
const panel = (id, label, ...content) => make("section", { id, "aria-label": label }, ...content);

// Nothing to show, with advice.
function emptyState(title, ...advice) {
  return make("div", { class: "state" }, make("p", { class: "answer" }, title), advice.filter(Boolean).map(text => make("p", { class: "note" }, text)));
}

function errorState(error, retry) {
  return make("div", { class: "alert bad", role: "alert" }, make("p", {}, make("strong", {}, error.status === 404 ? "Not found. " : "This cannot be shown. "), sentence(error.message)),
    make("button", { type: "button", click: retry }, "Try again"));
}

// ---- one page ----

let current = new AbortController();
let shown = ""; // URL of the current page, without its fragment

const address = () => location.pathname + location.search;

// The context of a page: `signal` is aborted when the page is left, `query` has the URL's parameters.
function newView() {
  current.abort();
  current = new AbortController();
  const title = make("h1", { tabindex: -1 }), head = make("div", { class: "head" }, title), body = make("div", { class: "body" });
  document.getElementById("main").replaceChildren(head, body);
  const view = {
    signal: current.signal, head, body, query: new URLSearchParams(location.search),
    // `extra` is placed to the right of the title, which may have the focus.
    title(text, extra) {
      document.title = text + " · ipw";
      title.textContent = text;
      while (title.nextSibling) title.nextSibling.remove();
      if (extra) head.append(extra);
    },
    put(...parts) {
      body.replaceChildren(...parts.flat().filter(Boolean));
      dropCharts();
    },
    // Changes the URL without a history entry.
    keep(parameters) {
      history.replaceState(null, "", location.pathname + queryText(parameters));
      view.query = new URLSearchParams(location.search);
      shown = address();
    },
    every(seconds, act) {
      const timer = setInterval(act, 1000 * seconds);
      view.signal.addEventListener("abort", () => clearInterval(timer));
    },
  };
  return view;
}

async function show() {
  const found = pages.map(page => [page, page.path.exec(location.pathname)]).find(([, parts]) => parts);
  const view = newView();
  shown = address();
  document.documentElement.dataset.ready = "no";
  for (const item of document.querySelectorAll("#bar nav a"))
    if (found && [found[0].href, found[0].under].includes(item.getAttribute("href"))) {
      item.setAttribute("aria-current", found[0].href ? "page" : "true");
      item.parentElement.scrollLeft = item.offsetLeft - item.parentElement.offsetLeft - 40; // scrolled into view on narrow screens
    }
    else item.removeAttribute("aria-current");
  view.title(found ? found[0].name : "Not found");
  view.put(loading());
  try {
    if (!found) throw new ApiError(404, "there is no page " + location.pathname);
    await found[0].draw(view, ...found[1].slice(1).map(decodeURIComponent));
  } catch (error) {
    if (view.signal.aborted) return;
    if (!(error instanceof ApiError)) console.error(error);
    view.put(errorState(error, show));
  }
  if (!view.signal.aborted) document.documentElement.dataset.ready = "yes";
}

// A new page starts at its title, also for screen readers.
function go(href) {
  history.pushState(null, "", href);
  scrollTo({ top: 0, behavior: "instant" });
  show();
  document.querySelector("main h1")?.focus({ preventScroll: true });
}

// ---- the frame ----

function drawFrame() {
  document.getElementById("bar").append(make("div", {},
    link("/", "ipw", { class: "brand", "aria-label": "ipw: intelligence per watt, live" }),
    make("nav", { "aria-label": "Pages" }, make("div", {}, pages.filter(page => page.href).map(page => link(page.href, page.name)))), themeButton()));
  document.getElementById("end").append(make("span", { id: "served" }),
    make("span", {}, link("/api/v1/openapi.json", "API"), " · Charts by ", link("/assets/report/echarts-notice", "Apache ECharts"), ", Apache License 2.0."));
}

// The server, and the folder or database of its runs.
async function drawServed() {
  const { version, host, runs, columns, figures } = await ask({ signal: new AbortController().signal }, "status");
  Object.assign(FIGURES, columns, figures);
  document.getElementById("served").append("ipw " + version + (host ? " on " + host : "")
    + (at(runs, "path_shown") ? ", runs of " + runs.path_shown : "") + ". ");
}

// Links within the dashboard are routed here; files, other mouse buttons and modifier keys keep their default action.
function followLink(event) {
  const found = event.target.closest?.("a[href]");
  if (!found || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const to = new URL(found.href);
  if (found.hasAttribute("download") || found.target || to.origin !== location.origin || to.hash || !pages.some(page => page.path.test(to.pathname))) return;
  event.preventDefault();
  go(to.pathname + to.search);
}

addEventListener("DOMContentLoaded", async () => {
  drawFrame();
  await drawServed().catch(() => { /* the page itself reports it */ });
  show();
});
addEventListener("click", followLink);
addEventListener("popstate", () => { if (address() !== shown) show(); }); // ignores fragments of the same page

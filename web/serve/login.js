// The login form works without this; it adds where to go next, and whether the last token was wrong.

const asked = new URLSearchParams(location.search);

document.getElementById("next").value = asked.get("next") || "/";
document.getElementById("failed").hidden = !asked.has("failed");
document.documentElement.dataset.ready = "yes";

// The login form works without this script, which adds the redirect target, and an error after a wrong token.

const asked = new URLSearchParams(location.search);

document.getElementById("next").value = asked.get("next") || "/";
document.getElementById("failed").hidden = !asked.has("failed");
document.documentElement.dataset.ready = "yes";

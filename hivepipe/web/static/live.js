// Load the view again after each change, and put its main part in place of the old one.
"use strict";
let waits = null;

async function refresh() {
  waits = null;
  if (document.activeElement?.closest("main form")) return later(2000); // somebody types there
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const [before, after] = [document.querySelector("main"), page.querySelector("main")];
  if (!after || before.innerHTML === after.innerHTML) return;
  const open = new Set([...before.querySelectorAll("details[open]")].map((each) => each.id));
  for (const each of after.querySelectorAll("details[id]")) each.open ||= open.has(each.id);
  const focused = document.activeElement?.id;
  before.replaceWith(after);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

function later(wait = 200) {
  waits ??= setTimeout(() => refresh().catch(() => {}), wait);
}

function open() { // the piece that the address names
  const named = document.getElementById(location.hash.slice(1));
  if (named?.tagName === "DETAILS") named.open = true;
}

const state = document.getElementById("live");
const events = new EventSource("/events"); // connects again by itself
events.onmessage = () => later();
events.onopen = () => {
  if (state.textContent === "connection lost") later();
  state.textContent = "live";
};
events.onerror = () => {
  state.textContent = "connection lost";
};
document.getElementById("home").addEventListener("change", (event) => event.target.form.submit());
addEventListener("pagehide", () => events.close());
addEventListener("hashchange", open);
open();

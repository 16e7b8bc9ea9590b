// Reload the view after each change, and replace its main element.
"use strict";
let waits = null;
let pause = 200; // milliseconds from a change to the next load

async function refresh() {
  waits = null;
  if (document.hidden && !(window.Notification && wanted())) return; // visibilitychange loads it
  if (document.querySelector("form.still")) return; // a confirmation must not change
  if (document.activeElement?.matches("main :is(input, select)")) return later(2000); // typing
  const began = performance.now();
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  const isPage = answer.headers.get("Content-Type")?.startsWith("text/html"); // of a view or its error
  trouble = isPage ? "" : TROUBLES[answer.status] || `not up to date: the server answers ${answer.status}`;
  show();
  if (!isPage) return;
  const text = await answer.text();
  pause = Math.min(Math.max(200, 5 * (performance.now() - began)), 10000); // slow views reload less often
  const page = new DOMParser().parseFromString(text, "text/html");
  document.title = page.title;
  goOn(page);
  const [before, after] = [document.querySelector("main"), page.querySelector("main")];
  if (!after) return;
  const open = new Map([...before.querySelectorAll("details[id]")].map((each) => [each.id, each.open]));
  for (const each of after.querySelectorAll("details[id]")) each.open = open.get(each.id) ?? each.open;
  if (before.innerHTML === after.innerHTML) return; // so a selection in it stays
  const focused = before.contains(document.activeElement) ? selectorOf(document.activeElement) : "";
  for (const each of before.querySelectorAll("input:checked")) {
    const same = after.querySelector(`#${CSS.escape(each.id)}`);
    if (same) same.checked = true;
  }
  before.replaceWith(after);
  if (focused) document.querySelector(focused)?.focus({ preventScroll: true });
  notify(waiting(before), waiting(after));
  offer();
}

// ---- a notification when a session begins to wait, if the user has switched it on

const wanted = () => localStorage.getItem("notice") === "on" && Notification.permission === "granted";

function waiting(main) {
  const found = [...main.querySelectorAll(".waits-for-you[data-session]")];
  return new Map(found.map((each) => [each.dataset.session, each.closest("li").querySelector("h2").textContent]));
}

function notify(before, after) {
  if (!("Notification" in window) || !wanted()) return;
  for (const [session, title] of after) {
    if (!before.has(session)) new Notification("A session waits for you", { body: title, tag: session });
  }
}

function offer() { // show the notification button and its next action
  const button = document.getElementById("notice");
  if (!button || !("Notification" in window)) return;
  button.hidden = false;
  button.setAttribute("aria-pressed", wanted());
  button.textContent = wanted() ? "Stop notifying me" : "Notify me when a session waits";
}

async function flip() {
  const next = wanted() ? "off" : "on";
  if (next === "on") await Notification.requestPermission();
  localStorage.setItem("notice", next);
  offer();
}

function selectorOf(element) { // a selector of the same element in the reloaded page
  const link = element.getAttribute("href");
  return element.id ? `#${CSS.escape(element.id)}` : link ? `main a[href="${CSS.escape(link)}"]` : "";
}

function later(wait = pause) {
  waits ??= setTimeout(() => refresh().catch(() => {}), wait);
}

function goOn(page) { // reload for values that were not ready
  if (page.querySelector("[data-later]")) later(3000);
}

function unfold() { // open the piece in the URL's fragment
  const named = document.getElementById(location.hash.slice(1));
  if (named?.tagName === "DETAILS") named.open = true;
}

function choose(home) { // a click shows a project; arrow keys pass many, so a button follows them
  const show = Object.assign(document.createElement("button"), { textContent: "Show" });
  let byKey = false;
  home.addEventListener("pointerdown", () => (byKey = false));
  home.addEventListener("keydown", (event) => (byKey = event.key !== " " && !event.altKey)); // open the list
  home.addEventListener("change", () => (byKey ? home.after(show) : home.form.submit()));
}

const TROUBLES = { 401: "server restarted: open the address that it printed" };
const state = document.getElementById("live");
let connection = state.textContent; // the state of the stream
let trouble = ""; // why the last load failed, or ""
let stream = null; // shared by all pages (stream.js), or its own without SharedWorker

function hear(message) { // "changed", or the state of the connection
  if (message === "changed") return later();
  if ([message, connection].includes("connection lost")) later(); // it may have been refused
  connection = message;
  show();
}

function show() {
  state.textContent = trouble || connection;
}

function listen() {
  if (window.SharedWorker) {
    const { port } = new SharedWorker("/static/stream.js");
    port.onmessage = (event) => hear(event.data);
    stream = { close: () => port.postMessage("left") };
    return;
  }
  stream = new EventSource("/events");
  stream.onmessage = () => hear("changed");
  stream.onopen = () => hear("live");
  stream.onerror = () => {
    hear("connection lost");
    if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 5000);
  };
}

listen();
choose(document.getElementById("home"));
addEventListener("pagehide", () => stream.close());
addEventListener("pageshow", (event) => event.persisted && (listen(), later()));
addEventListener("hashchange", unfold);
addEventListener("click", (event) => event.target.id === "notice" && flip());
document.addEventListener("visibilitychange", () => document.hidden || later());
setInterval(later, 60000); // some states change with time only
unfold();
goOn(document);
offer();

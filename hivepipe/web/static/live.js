// Reload the view after each change, and replace its main element.
"use strict";
let timer = null; // of the next load
let again = Infinity; // milliseconds from the end of this load to the next one
let isLoading = false; // one load at a time: an older answer must not replace a newer one
let pause = 200; // milliseconds from a change to the next load
let took = 0; // milliseconds of the last load
let ended = 0; // the time of its end
const every = 1000 * document.querySelector("main").dataset.every; // milliseconds between loads without a change
let regular = setTimeout(later, every); // the next of these loads
let limit = 60000; // milliseconds for an answer, which never comes over a half-open connection

function later(wait = pause) {
  if (isLoading) again = Math.min(again, wait);
  else timer ??= setTimeout(load, wait);
}

async function load() {
  [timer, again, isLoading] = [null, Infinity, true];
  await refresh().catch(() => (trouble = connection === "connection lost" ? "" : `${OUTDATED} does not answer`));
  isLoading = false;
  show();
  clearTimeout(regular);
  regular = setTimeout(later, Math.max(every, 4 * pause));
  if (again < Infinity) later(again);
}

async function refresh() {
  if (document.hidden && !notifies()) return; // visibilitychange loads it
  if (document.querySelector("form.still")) return; // a confirmation must not change
  if (isInUse()) return later(2000);
  const began = performance.now();
  const answer = await fetch(location.href, { headers: { Accept: "text/html" }, signal: AbortSignal.timeout(limit) });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const [before, after] = [document.querySelector("main"), page.querySelector("main")];
  trouble = after ? "" : TROUBLES[answer.status] || `${OUTDATED} answers ${answer.status}`;
  if (!after) return; // neither a view nor its error
  const last = took;
  ended = performance.now();
  took = ended - began;
  pause = Math.min(Math.max(200, 5 * Math.min(took, last)), 60000); // views that stay slow reload less often
  document.title = page.title;
  renew(document.getElementById("home"), page.getElementById("home"));
  renewLinks(document.querySelector("nav"), page.querySelector("nav"));
  goOn(page);
  keep(before, after);
  if (before.innerHTML === after.innerHTML) return; // so a screen reader stays where it reads
  if (isInUse()) return later(2000); // since the request
  replace(before, after);
  notify(waiting(before), waiting(after));
  offer();
}

function isInUse() { // an update would disturb typing, and undo a selection that is about to be copied
  const selects = getSelection().type === "Range" && getSelection().containsNode(document.querySelector("main"), true);
  return document.hasFocus() && (selects || document.activeElement?.matches(TYPING));
}

function renew(homes, now) { // the choice of projects, of which one may be new or gone
  if (!now || homes.innerHTML === now.innerHTML || homes === document.activeElement) return;
  const chosen = homes.value;
  homes.replaceChildren(...now.children);
  homes.value = chosen;
  if (homes.selectedIndex === -1) homes.selectedIndex = 0;
}

function renewLinks(links, now) { // a team may have been joined or left
  if (!now || links.innerHTML === now.innerHTML || links.contains(document.activeElement)) return;
  links.replaceWith(now);
}

function keep(before, after) { // what the user has opened and entered
  for (const each of before.querySelectorAll(":is(details, input, select)[id]")) {
    const same = after.querySelector(selectorOf(each));
    if (same) for (const name of ["open", "checked", "value"]) if (name in each) same[name] = each[name];
    if (same?.selectedIndex === -1) same.selectedIndex = 0; // the value that was selected is gone
  }
}

function replace(before, after) { // and keep the focus, and how far tables are scrolled
  const focused = before.contains(document.activeElement) ? selectorOf(document.activeElement) : null;
  const tables = [...before.querySelectorAll(".wide")].map((each) => [selectorOf(each), each.scrollLeft]);
  before.replaceWith(after);
  for (const [table, left] of tables) document.querySelector(table)?.scroll({ left });
  if (focused) document.querySelector(focused)?.focus({ preventScroll: true });
}

function selectorOf(element) { // a selector of the same element in the reloaded page
  if (element.id) return `#${CSS.escape(element.id)}`;
  const name = ["href", "aria-label", "value"].find((each) => element.hasAttribute(each));
  const attribute = name ? `[${name}="${CSS.escape(element.getAttribute(name))}"]` : "";
  return `${selectorOf(element.parentElement.closest("[id], section, details"))} ${element.localName}${attribute}`;
}

// ---- a notification when a session begins to wait, if the user has switched it on

const wanted = () => localStorage.getItem("notice") === "on" && Notification.permission === "granted";

function waiting(main) {
  const found = [...main.querySelectorAll(".waits-for-you[data-session]")];
  return new Map(found.map((each) => [each.dataset.session, each.closest("li").querySelector("h2").textContent]));
}

function notifies() { // only a view that has the button can begin to wait
  return "Notification" in window && wanted() && document.getElementById("notice");
}

function notify(before, after) {
  if (!notifies()) return;
  for (const [session, title] of after) {
    if (!before.has(session)) new Notification("A session waits for you", { body: title, tag: session });
  }
}

function offer() { // show the notification button and its next action
  const button = document.getElementById("notice");
  if (!button || !("Notification" in window)) return;
  button.hidden = false;
  button.textContent = wanted() ? "Stop notifying me" : "Notify me when a session waits";
}

async function flip() {
  const next = wanted() ? "off" : "on";
  if (next === "on") await Notification.requestPermission();
  localStorage.setItem("notice", next);
  offer();
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

function shown() { // the pause may have passed while the page was hidden
  clearTimeout(timer);
  timer = null;
  later(Math.max(200, ended + pause - performance.now()));
}

function resume() { // the browser kept the whole page; its filters must show what the address says
  for (const filters of document.querySelectorAll("form[autocomplete]")) filters.reset();
  listen();
  later();
}

const TYPING = "main :is(input:not([type=checkbox]), select)";
const OUTDATED = "not up to date: the server";
const TROUBLES = {
  401: "server restarted: open the address that it printed",
  503: "not up to date: hivepipe is being upgraded, or a proxy does not reach it",
};
const state = document.getElementById("live");
let connection = "connecting"; // the state of the stream
let trouble = ""; // why the last load failed, or ""
let silent = 20000; // milliseconds without a message until the connection counts as lost
let silence = null; // the timer of that time
let stream = null; // shared by all pages (stream.js), or its own without SharedWorker

function hear(message) { // "changed", or the state of the connection
  clearTimeout(silence);
  silence = setTimeout(() => hear("connection lost"), silent); // the server sends `alive` every 10 s
  // There may have been a change before the stream was open, and a lost connection may be refused.
  if (message === "live" ? connection !== "live" : message !== "connecting") later();
  connection = message === "changed" ? "live" : message; // beside many changes there is no `alive`
  show();
}

function show() {
  const text = trouble || connection;
  if (state.textContent !== text) state.textContent = text; // a screen reader announces each change
}

function listen() {
  if (window.SharedWorker) {
    // A name of its own, because a worker of an older page does not pass `alive` on.
    const { port } = new SharedWorker("/static/stream.js", "alive");
    port.onmessage = (event) => hear(event.data);
    stream = { close: () => port.postMessage("left") };
    return;
  }
  stream = new EventSource("/events");
  stream.onmessage = () => hear("changed");
  stream.onopen = () => hear("live");
  stream.addEventListener("alive", () => hear("live"));
  stream.onerror = () => {
    hear("connection lost");
    if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 5000);
  };
}

show();
listen();
choose(document.getElementById("home"));
addEventListener("pagehide", () => stream.close());
addEventListener("pageshow", (event) => event.persisted && resume());
addEventListener("hashchange", unfold);
addEventListener("click", (event) => event.target.id === "notice" && flip());
document.addEventListener("visibilitychange", () => document.hidden || shown());
unfold();
goOn(document);
offer();

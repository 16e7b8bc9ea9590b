// One stream of changes for all pages: a browser opens at most six connections to a server.
"use strict";
const pages = new Set();
let state = "connecting";
let events = null;

function tell(message) {
  for (const page of pages) page.postMessage(message);
}

function listen() { // EventSource reconnects by itself, except after a refusal
  events = new EventSource("/events");
  events.onopen = () => tell((state = "live"));
  events.onmessage = () => tell("changed");
  events.addEventListener("alive", () => tell((state = "live")));
  events.onerror = () => {
    tell((state = "connection lost"));
    if (events.readyState === EventSource.CLOSED) setTimeout(listen, 5000);
  };
}

onconnect = ({ ports: [page] }) => {
  pages.add(page);
  page.onmessage = () => pages.delete(page); // the page was left
  page.postMessage(state);
  if (!events) listen();
};

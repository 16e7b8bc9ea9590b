// One stream of changes for all pages of a browser, which opens six connections to a server at most.
"use strict";
const pages = new Set();
let state = "connecting";
let events = null;

function tell(message) {
  for (const page of pages) page.postMessage(message);
}

function listen() { // a source connects again by itself, but for a server that refused it
  events = new EventSource("/events");
  events.onopen = () => tell((state = "live"));
  events.onmessage = () => tell("changed");
  events.onerror = () => {
    tell((state = "connection lost"));
    if (events.readyState === EventSource.CLOSED) setTimeout(listen, 5000);
  };
}

onconnect = ({ ports: [page] }) => {
  pages.add(page);
  page.onmessage = () => pages.delete(page); // it says that it is left
  page.postMessage(state);
  if (!events) listen();
};

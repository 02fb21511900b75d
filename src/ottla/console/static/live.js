// Keeps an open page true: news arrive as numbers of the picture, htmx fetches the page again and morphs it.
"use strict";
(() => {
  const SPEAK_MS = 5000, PAUSE_MS = 1000;
  let source = null, spokenAt = 0, due = null, refreshedAt = 0;
  let seenAt = performance.now();

  const page = () => document.getElementById("page");

  function refresh() {
    const wait = refreshedAt + PAUSE_MS - performance.now();
    if (due !== null) return;
    due = setTimeout(() => {
      due = null;
      refreshedAt = performance.now();
      document.body.dispatchEvent(new Event("picture"));
    }, Math.max(0, wait));
  }

  function listen() {
    if (source !== null || document.hidden) return;
    source = new EventSource("/events?number=" + page().dataset.number);
    source.addEventListener("picture", refresh);
  }

  function stop() {
    if (source !== null) source.close();
    source = null;
  }

  function speak() {
    const headline = document.querySelector("h1");
    const spoken = document.getElementById("spoken");
    const now = performance.now();
    if (headline && spoken.textContent !== headline.textContent && now - spokenAt >= SPEAK_MS) {
      spokenAt = now;
      spoken.textContent = headline.textContent;
    }
  }

  function tick() {
    const age = document.getElementById("age");
    if (!age) return;
    const seconds = Number(age.dataset.age) + (performance.now() - seenAt) / 1000;
    age.textContent = seconds < 120 ? Math.round(seconds) + " s" : Math.round(seconds / 60) + " min";
  }

  // A page that is looked at for long without news fetches itself now and then, so that its age stays true.
  setInterval(() => { if (!document.hidden && performance.now() - seenAt > 20000) refresh(); }, 5000);
  setInterval(tick, 1000);
  document.addEventListener("htmx:after:swap", () => { seenAt = performance.now(); speak(); });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) stop(); else { listen(); refresh(); }
  });

  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "?") { document.getElementById("keys").showModal(); return; }
    const target = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (!target) return;
    event.preventDefault();
    if (target.tagName === "A") target.click(); else target.focus();
  });

  function openNamed() {
    const named = location.hash && document.getElementById(location.hash.slice(1));
    const details = named && named.querySelector("details");
    if (details) { details.open = true; named.scrollIntoView({ block: "nearest" }); }
  }
  // The newest incident is at the right end: where the drawing is wider than the screen, begin there.
  for (const drawing of document.querySelectorAll(".lanes .scroll")) drawing.scrollLeft = drawing.scrollWidth;

  addEventListener("hashchange", openNamed);
  openNamed();
  listen();
})();

// Live pages: when the server says that something changed, the page is loaded again and those parts
// that differ are exchanged. A part in which somebody is typing stays as it is.
"use strict";
(() => {
  const root = document.documentElement;
  const news = document.getElementById("news");

  const busy = (part) => part.contains(document.activeElement) && document.activeElement.matches("input, textarea, select");

  const refresh = async () => {
    const answer = await fetch(location.href, { headers: { accept: "text/html" }, redirect: "manual" });
    if (!answer.ok) return; // signed out, or the console is starting
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    let changed = 0;
    for (const part of document.querySelectorAll("[data-live]")) {
      const other = page.getElementById(part.id);
      if (!other || busy(part) || part.innerHTML === other.innerHTML) continue;
      const held = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      part.replaceChildren(...other.childNodes);
      if (held !== null) part.querySelector(`[href="${CSS.escape(held)}"]`)?.focus();
      part.classList.remove("fresh");
      void part.offsetWidth;
      part.classList.add("fresh");
      changed += 1;
    }
    // A form whose time is over must not stay: it could only fail.
    const decide = document.getElementById("decide");
    if (decide && !page.getElementById("decide")) decide.remove();
    root.dataset.mark = page.documentElement.dataset.mark;
    if (changed) news.textContent = "The page has changed.";
  };

  let running = Promise.resolve();
  const source = new EventSource("/events");
  source.onmessage = (event) => {
    if (event.data !== root.dataset.mark) running = running.then(refresh).catch(() => {});
    root.dataset.told = event.data;
  };
  source.onopen = () => { root.dataset.live = "on"; };
  source.onerror = () => { root.dataset.live = "off"; };
})();

// The button for light and dark. Until it is pressed the page follows the reader's own setting.
"use strict";
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const show = () => {
    button.textContent = dark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Change to ${dark() ? "light" : "dark"} colours`);
    button.setAttribute("aria-pressed", String(dark()));
  };
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    show();
  });
  system.addEventListener("change", show);
  show();

  // A link into closed details opens them; on paper nothing can be opened.
  const open = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) target.open = true;
  };
  window.addEventListener("hashchange", open);
  open();
  window.addEventListener("beforeprint", () => {
    for (const claim of document.querySelectorAll("details.claim")) claim.open = true;
  });
})();

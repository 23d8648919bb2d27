// Draws every figure of the page, and saves pictures and data. Nothing is fetched.
"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const copy = (value) => JSON.parse(JSON.stringify(value));

  const drawn = [];
  for (const [anchor, figure] of Object.entries(figures)) {
    figure.panels.forEach((panel, index) => {
      const shown = copy(panel);
      delete shown.title; // the page has a heading and one legend for all panels
      shown.config.legend.disable = true;
      drawn.push(
        vegaEmbed(document.getElementById(`${anchor}-${index}`), shown, {
          actions: false,
          renderer: "svg",
          tooltip: { theme: "page", disableDefaultStyle: true },
        }),
      );
    });
  }
  Promise.all(drawn).then(() => {
    document.documentElement.dataset.drawn = String(drawn.length);
  });

  // A picture stands alone: it has title and legend, and light colours in place of their names.
  const standalone = async (panel) => {
    const palette = document.createElement("div");
    palette.className = "light";
    palette.hidden = true;
    document.body.append(palette);
    const colours = getComputedStyle(palette);
    const text = JSON.stringify(panel).replace(/var\((--[a-z-]+)\)/g, (_, name) =>
      colours.getPropertyValue(name).trim(),
    );
    palette.remove();
    const alone = JSON.parse(text);
    alone.width = 560;
    alone.background = "#ffffff";
    alone.padding = 16;
    alone.autosize = { type: "pad" };
    const aside = document.createElement("div");
    return (await vegaEmbed(aside, alone, { actions: false, renderer: "svg" })).view;
  };

  const quote = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const csv = ({ columns, rows }) =>
    [columns, ...rows.map((row) => columns.map((name) => row[name]))]
      .map((row) => row.map(quote).join(","))
      .join("\r\n") + "\r\n";

  const make = {
    csv: async (figure) => new Blob([csv(figure)], { type: "text/csv" }),
    json: async (figure) =>
      new Blob([`${JSON.stringify(figure.rows, null, 1)}\n`], { type: "application/json" }),
    svg: async (figure, panel) =>
      new Blob([await (await standalone(figure.panels[panel])).toSVG()], { type: "image/svg+xml" }),
    png: async (figure, panel) => {
      const canvas = await (await standalone(figure.panels[panel])).toCanvas(2);
      return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
    },
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-save]");
    if (!button) return;
    const { save, figure, panel } = button.dataset;
    const address = URL.createObjectURL(await make[save](figures[figure], panel));
    const link = document.createElement("a");
    link.href = address;
    link.download = panel === undefined ? `${figure}.${save}` : `${figure}-${Number(panel) + 1}.${save}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  });
})();

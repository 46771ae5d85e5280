"use strict";
(() => {
  const INK = "#444444";
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const colour = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function inked(value, text) {
    if (value === INK) return text;
    if (Array.isArray(value)) return value.map((item) => inked(item, text));
    if (value && typeof value === "object") {
      return Object.fromEntries(
        Object.entries(value).map(([key, item]) => [key, inked(item, text)]));
    }
    return value;
  }

  function dataFor(data, narrow) {
    return inked(data, colour("--text")).map((trace) => trace.type !== "heatmap" ? trace
      : Object.assign({}, trace, {
        textfont: { size: narrow ? 9 : 12 },
        colorbar: Object.assign({}, trace.colorbar, narrow
          ? {
            orientation: "h", y: -0.2, yanchor: "top", thickness: 12, nticks: 4,
            title: Object.assign({}, trace.colorbar.title, { side: "top" }),
          }
          : { thickness: 18 }),
      }));
  }

  function layoutFor(layout, narrow) {
    const text = colour("--text"), grid = colour("--grid");
    const axis = (given) => Object.assign({}, given, {
      gridcolor: grid, linecolor: grid, zerolinecolor: grid, fixedrange: true,
      title: Object.assign({}, given && given.title, { font: { color: text } }),
    });
    return Object.assign({}, inked(layout, text), {
      autosize: true,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: Object.assign({}, layout.font, { color: text, size: narrow ? 11 : 13 }),
      margin: { l: narrow ? 48 : 70, r: narrow ? 8 : 20, t: 16, b: 48 },
      legend: Object.assign({}, layout.legend, narrow
        ? { orientation: "h", x: 0, y: -0.22, xanchor: "left", yanchor: "top" }
        : { x: 1.02, y: 1 }),
      hoverlabel: { bgcolor: colour("--card"), font: { color: text } },
      xaxis: axis(layout.xaxis),
      yaxis: axis(layout.yaxis),
    });
  }

  const drawn = new WeakMap();
  const given = (figure) => {
    if (!drawn.has(figure)) {
      drawn.set(figure, JSON.parse(figure.querySelector("script").textContent));
    }
    return drawn.get(figure);
  };

  function draw() {
    for (const figure of document.querySelectorAll("figure")) {
      const place = figure.querySelector(".plot"), { data, layout } = given(figure);
      const narrow = place.clientWidth < 620;
      Plotly.react(
        place, dataFor(data, narrow), layoutFor(layout, narrow),
        { displayModeBar: false, responsive: true });
    }
  }

  draw();
  // A page that takes in a figure later says so.
  document.addEventListener("figures", draw);
  dark.addEventListener("change", draw);
  let waiting;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(draw, 150);
  });
})();

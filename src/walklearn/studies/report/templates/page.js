// The page's behaviour: colours, the verdict table, and blocks of figures with their controls.

const CONFIG = {
  displaylogo: false,
  modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
  displayModeBar: matchMedia("(hover: none)").matches ? false : "hover",
  toImageButtonOptions: { format: "svg", filename: "walklearn" },
};

const MIN_WIDTH = 120;  // a figure of fewer pixels has no room for its axes

/* Figures ------------------------------------------------------------------------------- */

const redraws = [];  // all figures of the page, to draw again in other colours

function table(block, figure, state, box) {
  const wanted = columns(block, state);
  const picked = ["lines", "bars"].includes(block.kind);
  const rows = [];
  let heads = null;
  for (const series of figure.series.filter((one) => shown(one, state))) {
    const names = picked
      ? ["label", wanted.x, wanted.y, wanted.lower, wanted.upper, "source"].filter((name) => series.columns[name])
      : Object.keys(series.columns);
    heads ??= ["series", ...names];
    const length = Object.values(series.columns)[0].length;
    for (let i = 0; i < length; i++) rows.push([series.name, ...names.map((name) => read(series.columns[name][i]))]);
  }
  const made = document.createElement("table");
  const head = made.createTHead().insertRow();
  for (const name of heads || []) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = name;
    head.append(cell);
  }
  const body = made.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    for (const value of row) line.insertCell().textContent = value;
  }
  box.replaceChildren(made);
}

function commaSeparated(figure) {
  const names = [...new Set(figure.series.flatMap((one) => Object.keys(one.columns)))];
  const keys = [...new Set(figure.series.flatMap((one) => Object.keys(one.keys)))];
  const quote = (value) => (value === null || value === undefined ? "" : /[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : value);
  const lines = [["series", ...keys, ...names, "file"]];
  for (const series of figure.series) {
    const length = Object.values(series.columns)[0].length;
    for (let i = 0; i < length; i++)
      lines.push([series.name, ...keys.map((key) => series.keys[key]), ...names.map((name) => series.columns[name]?.[i]), series.source]);
  }
  return lines.map((line) => line.map(quote).join(",")).join("\n") + "\n";
}

function download(text, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function panel(block, state, element, heading) {
  const figure = block.figures[Number(element.dataset.figure)];
  const plot = element.querySelector(".plot");
  const numbers = element.querySelector("details.numbers");
  let near = false, stale = true, drawnWidth = 0;
  const draw = () => {
    const { clientWidth: width, clientHeight: height } = plot;
    stale = !near || width < MIN_WIDTH;  // figures that are folded or far from the screen are drawn later
    if (stale) return;
    const drawn = DRAW[block.kind](block, figure, state);
    if (width !== drawnWidth) Plotly.purge(plot);  // Plotly fails to fit some figures to another width
    drawnWidth = width;
    Plotly.react(plot, drawn.traces, { ...drawn.layout, width, height }, CONFIG);
    element.querySelector(".axes").textContent = drawn.axes;
    element.querySelector(".note").textContent = drawn.note || "";
    plot.setAttribute("aria-label", [heading, figure.title, drawn.axes, drawn.description].filter(Boolean).join(". "));
    if (numbers.open) table(block, figure, state, numbers.querySelector(".table"));
  };
  numbers.addEventListener("toggle", draw);
  numbers.querySelector(".download").addEventListener("click", () =>
    download(commaSeparated(figure), `${heading} ${figure.title}.csv`.replace(/[^\w.]+/g, "-")));
  new IntersectionObserver((entries) => {
    near = entries.at(-1).isIntersecting;
    if (near && stale) draw();
  }, { rootMargin: "600px" }).observe(plot);
  new ResizeObserver(() => { if (plot.clientWidth !== drawnWidth) requestAnimationFrame(draw); }).observe(plot);
  return draw;
}

for (const element of document.querySelectorAll(".block")) {
  const block = blocks[element.dataset.block];
  const state = { hidden: new Set() };
  for (const control of block.controls) state[control.name] = control.start;
  const heading = `${element.closest("section").querySelector("h2").textContent}: ${element.querySelector("h3").textContent}`;
  const draws = [...element.querySelectorAll("figure")].map((figure) => panel(block, state, figure, heading));
  const drawAll = () => draws.forEach((draw) => draw());
  for (const select of element.querySelectorAll("[data-control]")) {
    select.value = state[select.dataset.control];  // a browser may restore another one
    select.addEventListener("change", () => { state[select.dataset.control] = select.value; drawAll(); });
  }
  for (const button of element.querySelectorAll("[data-series]")) {
    const { series } = button.dataset;
    const look = style(block, series);
    const line = button.querySelector("line");
    line.style.stroke = `var(--${look.colour})`;
    line.style.strokeDasharray = DASH_STROKES[look.dash];
    button.addEventListener("click", () => {
      const hide = !state.hidden.delete(series);
      if (hide) state.hidden.add(series);
      button.setAttribute("aria-pressed", String(!hide));
      drawAll();
    });
  }
  redraws.push(drawAll);
}

/* Colours ------------------------------------------------------------------------------- */

const themes = { auto: "◐ Auto", light: "☀ Light", dark: "☾ Dark" };
const toggle = document.getElementById("theme");

function storedTheme() {
  try { return localStorage.getItem("walklearn-theme"); } catch { return null; }  // a page from a file may have no storage
}

function paint(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  toggle.textContent = themes[theme];
  toggle.dataset.theme = theme;
  toggle.setAttribute("aria-label", `Colours: ${theme === "auto" ? "as the system has them" : theme}. Change`);
  try { localStorage.setItem("walklearn-theme", theme); } catch { /* then it is forgotten */ }
  redraws.forEach((redraw) => redraw());
}

toggle.addEventListener("click", () => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const order = dark ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
  paint(order[(order.indexOf(toggle.dataset.theme) + 1) % order.length]);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraws.forEach((redraw) => redraw()));
paint(themes[storedTheme()] ? storedTheme() : "auto");

/* Verdicts ------------------------------------------------------------------------------ */

const verdicts = document.getElementById("verdict-table");
if (verdicts) {
  const chips = [...document.querySelectorAll(".filters [data-verdict]")];
  const search = document.getElementById("search");
  const foldAll = document.getElementById("fold");
  const groups = [...verdicts.tBodies];
  const rowsOf = (group) => [...group.querySelectorAll("tr.row")];

  const filter = () => {
    const wanted = new Set(chips.filter((chip) => chip.ariaPressed === "true").map((chip) => chip.dataset.verdict));
    const words = search.value.toLowerCase().split(/\s+/);
    let left = 0;
    for (const group of groups) {
      let some = false;
      const claim = group.querySelector(".claim").textContent.toLowerCase();
      for (const row of rowsOf(group)) {
        const text = claim + row.textContent.toLowerCase();
        row.hidden = !(wanted.has(row.dataset.verdict) && words.every((word) => text.includes(word)));
        if (row.hidden) unfold(row, false);
        some ||= !row.hidden;
        left += !row.hidden;
      }
      group.hidden = !some;
    }
    document.getElementById("none-left").hidden = left > 0;
  };
  const unfold = (row, open) => {
    row.nextElementSibling.hidden = !open;
    row.querySelector(".from").setAttribute("aria-expanded", String(open));
  };
  const fold = (group, folded) => {
    group.classList.toggle("folded", folded);
    group.querySelector("button.fold").setAttribute("aria-expanded", String(!folded));
  };
  const say = () => {
    const folded = groups.every((group) => group.classList.contains("folded"));
    foldAll.textContent = folded ? "Unfold all" : "Fold all";
    foldAll.dataset.folded = folded;
  };

  for (const chip of chips)
    chip.addEventListener("click", () => { chip.ariaPressed = String(chip.ariaPressed !== "true"); filter(); });
  search.addEventListener("input", () => { filter(); if (search.value) groups.forEach((group) => fold(group, false)); say(); });
  foldAll.addEventListener("click", () => {
    const folded = foldAll.dataset.folded !== "true";
    groups.forEach((group) => fold(group, folded));
    say();
  });
  for (const group of groups) {
    group.querySelector("button.fold").addEventListener("click", () => { fold(group, !group.classList.contains("folded")); say(); });
    for (const row of rowsOf(group))
      row.querySelector(".from").addEventListener("click", () => unfold(row, row.nextElementSibling.hidden));
  }
  const unfoldTarget = () => {
    const group = groups.find((one) => `#${one.id}` === decodeURIComponent(location.hash));
    if (group) { fold(group, false); say(); }
  };
  addEventListener("hashchange", unfoldTarget);
  const keys = {
    estimate: (row) => Number(row.dataset.estimate),
    verdict: (row) => chips.findIndex((chip) => chip.dataset.verdict === row.dataset.verdict),
    reading: (row) => row.querySelector(".reading").textContent,
  };
  for (const button of verdicts.tHead.querySelectorAll("[data-sort]"))
    button.addEventListener("click", () => {
      const order = button.dataset.order === "up" ? "down" : "up";
      verdicts.tHead.querySelectorAll("[data-sort]").forEach((one) => { delete one.dataset.order; one.closest("th").ariaSort = null; });
      button.dataset.order = order;
      button.closest("th").ariaSort = order === "up" ? "ascending" : "descending";
      const key = keys[button.dataset.sort];
      const sign = order === "up" ? 1 : -1;
      for (const group of groups) {  // a claim's readings stay together
        const rows = rowsOf(group).sort((a, b) => (key(a) > key(b) ? sign : key(a) < key(b) ? -sign : 0));
        for (const row of rows) { const origin = row.nextElementSibling; group.append(row, origin); }
      }
    });
  say();
  unfoldTarget();
}

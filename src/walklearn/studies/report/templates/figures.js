// Draws the blocks of figures. Each series is named columns of numbers, which are drawn, tabulated
// and offered for download.

const DASHES = ["solid", "dash", "dashdot", "dot"];  // and colours, in the order of plots/axes.py
const COLOURS = 7;
const DASH_STROKES = { solid: "", dash: "7 4", dot: "2 4", dashdot: "7 3 2 3" };

const blocks = JSON.parse(document.getElementById("data").textContent);

// Plotly takes colours, not CSS variables: a hidden element resolves them.
const probe = document.createElement("span");
probe.hidden = true;
document.body.append(probe);
function colour(name) {
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}
const faint = (rgb, alpha) => rgb.replace(/^rgba?\(([^,]+),([^,]+),([^,)]+).*$/, `rgba($1,$2,$3,${alpha})`);

function style(block, name) {
  const place = block.styles[name];
  return { colour: `series-${place % COLOURS}`, dash: DASHES[Math.floor(place / COLOURS) % DASHES.length] };
}

const read = (value) =>
  value === null || value === undefined ? "–"
    : typeof value !== "number" ? String(value)
    : value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e7) ? value.toExponential(2)
    : value.toLocaleString("en-GB", { maximumSignificantDigits: 4 });

const brief = (value) =>
  value === null ? "–"
    : value >= 1e5 || value < 1e-3 ? value.toExponential(0).replace("e+", "e")
    : String(Number(value.toPrecision(2)));

const shown = (series, state) =>
  Object.entries(series.keys).every(([name, value]) => state[name] === value);

function layout(extra) {
  const axis = {
    gridcolor: colour("grid"), linecolor: colour("line"), zerolinecolor: colour("line"),
    tickcolor: colour("line"), automargin: true, exponentformat: "power",
  };
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false,
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("ink") },
    margin: { l: 48, r: 12, t: 10, b: 44 },
    hoverlabel: { bgcolor: colour("surface"), bordercolor: colour("line"), font: { color: colour("ink") } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("muted"), activecolor: colour("accent") },
    // A finger that scrolls the page must not zoom a figure.
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    ...extra,
    xaxis: { ...axis, ...extra.xaxis }, yaxis: { ...axis, ...extra.yaxis },
  };
}

// A logarithmic axis over several decades needs no ticks between the powers of ten.
function logarithmic(values) {
  const logs = values.filter((value) => value > 0).map(Math.log10);
  const decades = logs.length ? Math.max(...logs) - Math.min(...logs) : 0;
  return { type: "log", dtick: decades >= 2 ? Math.ceil(decades / 7) : decades > 0.6 ? "D2" : undefined };
}

// A logarithmic axis can show positive numbers only.
const positive = (values, log) => values.map((value) => (log && value !== null && value <= 0 ? null : value));

function band(x, lower, upper, log, fill) {
  const floor = log ? Math.min(...[...lower, ...upper].filter((value) => value > 0)) : -Infinity;
  const xs = [], ys = [];
  for (let start = 0; start < x.length; start++) {
    if (lower[start] === null || upper[start] === null || x[start] === null) continue;
    let end = start;
    while (end + 1 < x.length && lower[end + 1] !== null && upper[end + 1] !== null) end++;
    const run = [...Array(end - start + 1).keys()].map((step) => start + step);
    xs.push(...run.map((i) => x[i]), ...run.toReversed().map((i) => x[i]), null);
    ys.push(...run.map((i) => Math.max(upper[i], floor)), ...run.toReversed().map((i) => Math.max(lower[i], floor)), null);
    start = end;
  }
  return { x: xs, y: ys, fill: "toself", fillcolor: fill, line: { width: 0 }, mode: "lines", hoverinfo: "skip", type: "scatter" };
}

// The columns that the controls of a block select.
function columns(block, state) {
  const y = state.y && state.centre ? `${state.y} ${state.centre}` : state.y || block.options.y;
  const x = state.x || block.options.x;
  return { x, y, lower: `${y} lower`, upper: `${y} upper` };
}

function label(block, name, value) {
  const control = block.controls.find((one) => one.name === name);
  return control ? control.options[value] : (block.options[`${name}_label`] || value || "");
}

// A number with its interval, if it has one.
const within = (value, lower, upper) =>
  read(value) + (lower === null || lower === undefined ? "" : ` (${read(lower)} to ${read(upper)})`);

function drawLines(block, figure, state) {
  const wanted = columns(block, state);
  const log = { x: block.options.x_log !== false, y: block.options.y_log !== false };
  const visible = figure.series.filter((one) => shown(one, state) && !state.hidden.has(one.name));
  const reach = visible.flatMap((one) => one.columns[wanted.x] || []).filter((value) => value !== null && (!log.x || value > 0));
  const ends = [Math.min(...reach), Math.max(...reach)];
  const bands = [], traces = [];  // lines stay above all bands
  const strength = visible.length > 5 ? 0.08 : 0.16;
  const description = [];
  for (const series of visible) {
    const look = style(block, series.name);
    const ink = colour(look.colour);
    let x = series.columns[wanted.x], y = series.columns[wanted.y];
    let lower = series.columns[wanted.lower] || y.map(() => null);
    let upper = series.columns[wanted.upper] || y.map(() => null);
    const level = x.every((value) => value === null);  // no value on this axis: a level
    if (level) [x, y, lower, upper] = [ends, ...[y, lower, upper].map((values) => [values[0], values[0]])];
    const last = y.length - 1;
    description.push(`${series.name} ${within(y[last], lower[last], upper[last])}`);
    const markers = block.options.mode || "lines";
    if (block.options.band || level) bands.push(band(x, lower, upper, log.y, faint(ink, strength * (level ? 0.5 : 1))));
    traces.push({
      type: "scatter", name: series.name, x: positive(x, log.x), y: positive(y, log.y), mode: level ? "lines" : markers,
      text: series.columns.label?.map(asText), textposition: "top center", textfont: { size: 10, color: colour("muted") },
      line: { color: ink, width: 2.2, dash: level && look.dash === "solid" ? "dash" : look.dash }, marker: { color: ink, size: 8 },
      customdata: y.map((_, i) => [within(y[i], lower[i], upper[i]), read(x[i]), asText(series.columns.label?.[i] ?? "")]),
      error_y: block.options.band || level || lower.every((value) => value === null) ? undefined : {
        type: "data", symmetric: false, color: ink, thickness: 1.4, width: 3,
        array: y.map((value, i) => (upper[i] === null ? 0 : upper[i] - value)),
        arrayminus: y.map((value, i) => (lower[i] === null ? 0 : value - lower[i])),
      },
      hovertemplate: `<b>${asText(series.name)}</b> %{customdata[2]}<br>%{customdata[0]}<br>at %{customdata[1]}<extra></extra>`,
    });
  }
  const names = { x: label(block, "x", wanted.x), y: label(block, "y", state.y) };
  return {
    traces: [...bands, ...traces], description: description.join("; "), axes: names.y,
    layout: layout({
      hovermode: "closest",
      xaxis: {
        ...(log.x ? logarithmic(reach) : {}), ...(block.options.ticks ? { tickvals: [...new Set(reach)] } : {}), title: { text: asText(names.x), standoff: 8 },
      },
      yaxis: log.y ? logarithmic([...bands, ...traces].flatMap((trace) => trace.y)) : {},
    }),
  };
}

function drawBars(block, figure, state) {
  const wanted = columns(block, state);
  const visible = figure.series.filter((one) => shown(one, state) && !state.hidden.has(one.name));
  const description = [], missed = {};
  const traces = visible.map((series) => {
    const y = series.columns[wanted.y];
    const lower = series.columns[wanted.lower], upper = series.columns[wanted.upper];
    series.columns[wanted.x].forEach((place, i) => {
      description.push(`${series.name}, ${place}: ${within(y[i], lower[i], upper[i])}`);
      if (y[i] === null) (missed[place] ??= []).push(`${series.name} ${Math.round(100 * series.columns.reached[i])} %`);
    });
    return {
      type: "bar", name: series.name, x: series.columns[wanted.x].map(asText), y,
      marker: { color: colour(style(block, series.name).colour) },
      text: y.map(read), textposition: "inside", insidetextanchor: "start", textangle: 0,
      customdata: y.map((_, i) => [within(y[i], lower[i], upper[i]), Math.round(100 * series.columns.reached[i])]),
      error_y: {
        type: "data", symmetric: false, color: colour("ink"), thickness: 1.2, width: 4,
        array: y.map((value, i) => (upper[i] === null ? 0 : upper[i] - value)),
        arrayminus: y.map((value, i) => (lower[i] === null ? 0 : value - lower[i])),
      },
      hovertemplate: `<b>${asText(series.name)}</b><br>%{customdata[0]}<br>%{customdata[1]} % of the instances reached it<extra></extra>`,
    };
  });
  const heights = visible.flatMap((one) => [...one.columns[wanted.y], ...one.columns[wanted.upper]]);
  return {
    traces, description: description.join("; "), axes: label(block, "y", state.y),
    note: Object.entries(missed).map(([place, names]) => `No bar for ${place}: instances that reached it are ${names.join(", ")}.`).join(" "),
    layout: layout({
      barmode: "group", bargap: 0.25, xaxis: { type: "category" }, margin: { l: 48, r: 12, t: 10, b: 44 },
      yaxis: { ...logarithmic(heights), range: span(heights), showticklabels: heights.some((value) => value !== null) },
    }),
  };
}

// From below the lowest bar to above the highest interval.
function span(values) {
  const logs = values.filter((value) => value > 0).map(Math.log10);
  return logs.length ? [Math.floor(Math.min(...logs) - 0.1), Math.max(...logs) + 0.15] : undefined;
}

function diverging() {
  return [[0, colour("cold")], [0.5, colour("even")], [1, colour("warm")]];
}

const isNarrow = () => innerWidth < 640;

// A colour scale: beside the figure, or below it on a narrow screen.
function scale({ title, marks }) {
  const common = { title: { text: title, side: "top" }, tickvals: Object.values(marks), ticktext: Object.keys(marks), outlinewidth: 0 };
  return isNarrow()
    ? { ...common, orientation: "h", thickness: 8, len: 0.6, y: 0, yref: "container", yanchor: "bottom" }
    : { ...common, thickness: 10, len: 0.7 };
}

function drawMap(block, figure, state) {
  const series = figure.series.find((one) => shown(one, state));
  if (!series) return { traces: [], description: "Nothing is stored for this choice.", axes: "", layout: layout({}) };
  const { x, y, ratio, lower, upper, verdict } = series.columns;
  const xs = [...new Set(x)], ys = [...new Set(y)];
  const grid = (value) => ys.map((row) => xs.map((column) => {
    const i = x.findIndex((_, place) => x[place] === column && y[place] === row);
    return i < 0 ? null : value(i);
  }));
  const { reach } = block.options.scale;
  const strength = grid((i) => (ratio[i] === null ? null : Math.max(-reach, Math.min(reach, Math.log2(ratio[i])))));
  return {
    traces: [{
      type: "heatmap", x: xs.map((value) => asText(read(value))), y: ys.map((value) => asText(read(value))), z: strength, zmin: -reach, zmax: reach,
      colorscale: diverging(), xgap: 3, ygap: 3, hoverongaps: false,
      text: grid((i) => (isNarrow() ? `<b>${brief(ratio[i])}</b>` : `<b>${read(ratio[i])}</b><br>${read(lower[i])} to ${read(upper[i])}`)),
      texttemplate: "%{text}", textfont: { size: 11 },
      customdata: grid((i) => `ratio ${read(ratio[i])} (${read(lower[i])} to ${read(upper[i])}): ${asText(verdict[i])}`),
      hovertemplate: "%{customdata}<extra></extra>",
      colorbar: scale(block.options.scale),
    }],
    description: ratio.map((value, i) => `${x[i]}, ${y[i]}: ${read(value)}, ${verdict[i]}`).join("; "),
    axes: state.view || "",
    layout: layout({
      xaxis: { type: "category", title: { text: asText(block.options.x_label || "") }, showgrid: false },
      yaxis: { type: "category", title: { text: asText(block.options.y_label || "") }, showgrid: false },
    }),
  };
}

const DRAW = { lines: drawLines, bars: drawBars, map: drawMap };

// Plotly interprets some HTML in its texts; escape names from studies.
function asText(text) {
  return String(text).replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

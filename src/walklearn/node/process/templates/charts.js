"use strict";
// What the pages draw with: SVG elements, axes, a curve. Numbers are all that comes from outside.

const NS = "http://www.w3.org/2000/svg";
const at = (id) => document.getElementById(id);

function svg(kind, attributes, inside) {
  const made = document.createElementNS(NS, kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (inside) inside.append(made);
  return made;
}

function put(id, text) {
  const place = at(id);
  if (place.textContent !== String(text)) place.textContent = text;
}

function chip(id, kind, text) {
  put(id, text);
  at(id).className = `chip ${kind}`;
}

const short = (value) => {
  if (value === null || value === undefined) return "?";
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e6)) return value.toExponential(1).replace("e", " e");
  return Number(value.toPrecision(3)).toLocaleString("en");
};

const since = (seconds) => {
  if (seconds === null || seconds === undefined) return "?";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 100) return `${Math.round(seconds)} s`;
  return seconds < 6000 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
};

function ticks(low, high, most) {
  const span = high - low || 1;
  const power = 10 ** Math.floor(Math.log10(span / most));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => span / one <= most);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-9; value += step) found.push(value);
  return found;
}

// An empty sheet of as many units as it has pixels: letters keep their size on a small screen.
function sheet(id, height) {
  const place = at(id), width = Math.max(240, place.clientWidth);
  place.setAttribute("viewBox", `0 0 ${width} ${height}`);
  place.replaceChildren();
  return [place, width];
}

// A curve of [x, y] points with y on a logarithmic scale; long ones are thinned to what can be seen.
function curve(id, points, label) {
  const height = 230, left = 50, bottom = 34, top = 8, [place, width] = sheet(id, height);
  const good = points.filter(([, y]) => y > 0);
  if (!good.length) return;
  const most = Math.max(1, ...good.map(([x]) => x));
  const logs = good.map(([, y]) => Math.log10(y));
  let low = Math.min(...logs), high = Math.max(...logs);
  if (high - low < 0.2) { low -= 0.1; high += 0.1; }
  const X = (x) => left + (width - left - 24) * x / most;
  const Y = (log) => top + (height - top - bottom) * (high - log) / (high - low);
  const marks = high - low < 1.2 ? ticks(10 ** low, 10 ** high, 4).filter((one) => one > 0).map(Math.log10)
    : ticks(low, high, 5).filter((one) => Math.abs(one - Math.round(one)) < 1e-9);
  for (const log of marks) {
    svg("line", { x1: left, x2: width - 12, y1: Y(log), y2: Y(log), class: "grid" }, place);
    svg("text", { x: left - 6, y: Y(log) + 4, "text-anchor": "end" }, place).textContent = short(10 ** log);
  }
  for (const x of ticks(0, most, 5)) {
    svg("text", { x: X(x), y: height - bottom + 16, "text-anchor": "middle" }, place).textContent = short(x);
  }
  svg("line", { x1: left, x2: width - 12, y1: height - bottom, y2: height - bottom, class: "axis" }, place);
  svg("text", { x: width - 12, y: height - 3, "text-anchor": "end" }, place).textContent = label;
  const every = Math.ceil(good.length / 600);
  const line = good.map(([x], i) => [X(x), Y(logs[i])]).filter((_, i) => i % every === 0 || i === good.length - 1);
  svg("polyline", { points: line.map((one) => one.map((n) => n.toFixed(1)).join(",")).join(" "), class: "curve" }, place);
}

// Events of the server: the whole picture first, then what is new. `silent` is told when it ends.
function listen(first, next, silent) {
  const source = new EventSource("events");
  source.onmessage = (event) => {
    const message = JSON.parse(event.data);
    if (message.first) first(message.first); else next(message);
  };
  source.onerror = silent;
}

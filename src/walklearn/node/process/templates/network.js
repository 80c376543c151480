// The page of `walklearn up --view`.

let world = null, now = null, points = [], newest = -1;
const SIZE = 600, MARGIN = 34;
const PHASES = { down: ["bad", "killed"], starting: ["open", "starting"], frozen: ["open", "frozen"] };

function begin(first) {
  world = first;
  points = first.points;
  put("count", world.names.length);
  put("about", world.about);
  drawGraph();
  drawTable();
  at("events").replaceChildren();
  newest = -1;
  first.events.forEach(tell);
  if (first.now) look(first.now);
}

function place(node) {
  const [x, y] = world.places[node];
  return [MARGIN + (SIZE - 2 * MARGIN) * x, MARGIN + (SIZE * 0.8 - 2 * MARGIN) * y];
}

function drawGraph() {
  const graph = at("graph");
  graph.setAttribute("viewBox", `0 0 ${SIZE} ${SIZE * 0.8}`);
  graph.replaceChildren();
  for (const [one, other] of world.edges) {
    const [x1, y1] = place(one), [x2, y2] = place(other);
    svg("line", { x1, y1, x2, y2, class: "edge" }, graph);
  }
  world.names.forEach((name, node) => {
    const [x, y] = place(node);
    const group = svg("g", { transform: `translate(${x} ${y})` }, graph);
    const dot = svg("circle", { r: 8, class: "node", id: `node-${node}`, tabindex: 0, role: "button" }, group);
    dot.addEventListener("click", () => toggle(node));
    dot.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") toggle(node); });
    svg("title", {}, dot);
    svg("path", { d: "M-5 -5L5 5M-5 5L5 -5", class: "cross", id: `cross-${node}`, visibility: "hidden" }, group);
  });
  svg("circle", { r: 16, class: "token", id: "token", visibility: "hidden" }, graph);
}

function drawTable() {
  at("nodes").replaceChildren(...world.names.map((name, node) => {
    const row = document.createElement("tr");
    const cells = ["", "", "", ""].map(() => row.appendChild(document.createElement("td")));
    cells[0].textContent = name;
    cells[1].append(Object.assign(document.createElement("span"), { id: `phase-${node}`, className: "chip" }));
    cells[2].className = "number";
    cells[2].id = `made-${node}`;
    const button = cells[3].appendChild(document.createElement("button"));
    button.id = `button-${node}`;
    button.addEventListener("click", () => toggle(node));
    return row;
  }));
}

async function toggle(node) {
  if (!now || now.ended) return;
  const action = now.phases[node] === "down" ? "start" : "kill";
  const answer = await fetch(`do/${action}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(node) });
  if (!answer.ok) write(now.seconds, (await answer.json()).error);
}

function colour(ratio) {
  const far = Math.max(-1, Math.min(1, Math.log2(ratio || 0.01) / 1.5));
  const mix = Math.round(100 * Math.abs(far));
  return `color-mix(in oklab, var(--${far < 0 ? "cold" : "warm"}) ${mix}%, var(--even))`;
}

function look(message) {
  now = message;
  const known = points.length ? points[points.length - 1][0] : -1;
  if (message.point && message.point[0] > known) points.push(message.point);
  (message.events || []).forEach(tell);
  const up = now.phases.filter((one) => !PHASES[one]).length, all = world.names.length;
  put("updates", `${now.updates.toLocaleString("en")} of ${now.of.toLocaleString("en")}`);
  at("progress").value = now.updates / now.of;
  put("error", short(now.error));
  put("messages", now.messages.toLocaleString("en"));
  put("holder", now.finished ? "the end" : now.holder === null ? "?" : world.names[now.holder]);
  put("up", `${up} of ${all}`);
  put("finished", `${now.finished} of ${all}`);
  if (now.finished) chip("state", "good", "the final model spreads");
  if (now.finished && now.finished >= up) chip("state", "good", "finished");
  else if (!now.begun) chip("state", "open", "the walk has not begun");
  else if (!now.finished && now.still_seconds > 2) chip("state", "bad", `no progress for ${since(now.still_seconds)}`);
  else if (!now.finished) chip("state", "good", "walking");
  showNodes();
  showVisits();
  curve("by-updates", points.map(([updates, , error]) => [updates, error]), "updates");
  curve("by-messages", points.map(([, messages, error]) => [messages, error]), "messages");
}

function shares() {
  const total = now.made.reduce((sum, one) => sum + one, 0) || 1;
  return now.made.map((one) => one / total);
}

function showNodes() {
  const share = shares(), largest = Math.max(...share, 1e-9);
  now.phases.forEach((phase, node) => {
    const dot = at(`node-${node}`), [kind, word] = PHASES[phase] || ["good", "up"];
    dot.setAttribute("class", `node ${phase.replace(" ", "-")}`);
    dot.setAttribute("r", (6 + 8 * Math.sqrt(share[node] / largest)).toFixed(1));
    dot.style.fill = PHASES[phase] ? "" : colour(share[node] / now.law[node]);
    dot.firstChild.textContent = `${world.names[node]}: ${word}, ${now.made[node]} updates`;
    dot.setAttribute("aria-label", dot.firstChild.textContent);
    at(`cross-${node}`).setAttribute("visibility", phase === "down" ? "visible" : "hidden");
    chip(`phase-${node}`, kind, word);
    put(`made-${node}`, now.made[node].toLocaleString("en"));
    put(`button-${node}`, phase === "down" ? "Start" : "Kill");
  });
  const token = at("token");
  token.setAttribute("visibility", now.holder === null || now.finished ? "hidden" : "visible");
  if (now.holder !== null) {
    const [x, y] = place(now.holder);
    token.style.transform = `translate(${x}px, ${y}px)`;
  }
}

function showVisits() {
  const share = shares(), height = 200, left = 44, bottom = 26, [chart, width] = sheet("visits", height);
  const highest = 1.08 * Math.max(...share, ...now.law), each = (width - left) / share.length;
  const Y = (value) => 6 + (height - bottom - 6) * (1 - value / highest);
  for (const value of ticks(0, highest, 4)) {
    svg("line", { x1: left, x2: width, y1: Y(value), y2: Y(value), class: "grid" }, chart);
    svg("text", { x: left - 5, y: Y(value) + 4, "text-anchor": "end" }, chart).textContent = `${short(100 * value)} %`;
  }
  share.forEach((value, node) => {
    const x = left + each * node;
    svg("rect", { x: x + 0.15 * each, width: 0.7 * each, y: Y(value), height: Y(0) - Y(value), class: "bar" }, chart);
    svg("line", { x1: x + 0.05 * each, x2: x + 0.95 * each, y1: Y(now.law[node]), y2: Y(now.law[node]), class: "law" }, chart);
  });
  const every = Math.ceil(28 / each);  // pixels that a label takes
  world.names.forEach((name, node) => {
    if (node % every) return;
    const label = svg("text", { x: left + each * (node + 0.5), y: height - 8, "text-anchor": "middle" }, chart);
    label.textContent = name.replace(/^node-/, "");
  });
}

// One that came with the whole picture may come again: each has a number.
function tell([number, seconds, text]) {
  if (number <= newest) return;
  newest = number;
  write(seconds, text);
}

function write(seconds, text) {
  const line = document.createElement("li"), time = document.createElement("time");
  time.textContent = `${seconds.toFixed(1)} s`;
  line.append(time, ` ${text}`);
  at("events").prepend(line);
  while (at("events").children.length > 200) at("events").lastChild.remove();
}

listen(begin, look, () => { chip("state", "bad", "the command has ended, or does not answer"); });

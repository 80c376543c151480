// The page of `walklearn node run --web`: what this one node knows.

let losses = [];

function begin(first) {
  losses = first.losses;
  if (first.now) look(first.now);
}

function look(now) {
  put("name", now.name);
  document.title = `${now.name}: walklearn`;
  put("about", `plan ${now.plan.name}, fingerprint ${now.fingerprint.slice(0, 16)}…`);
  const stalled = now.stalled && !now.final;
  chip("phase", stalled ? "bad" : now.phase === "idle" ? "open" : "good", stalled ? "no progress" : now.phase);
  put("updates", `${now.updates.toLocaleString("en")} of ${now.of.toLocaleString("en")}`);
  at("progress").value = now.updates / now.of;
  put("visit", now.holds_token ? "it is here" : now.token_seconds === null ? "never yet" : since(now.token_seconds));
  put("holder", now.last_holder || "?");
  put("made", (now.counters.updates || 0).toLocaleString("en"));
  put("rate", now.rate === null ? "?" : `${short(now.rate)} / s`);
  const confirmed = now.neighbours.filter((each) => each.confirmed).length;
  put("final", now.final ? `${now.final_hash}, confirmed by ${confirmed} of ${now.neighbours.length} neighbours` : "not yet");
  showNeighbours(now.neighbours);
  showPrivacy(now);
  if (now.loss) losses.push(now.loss);
  at("validation").hidden = !losses.length;
  if (losses.length) curve("loss", losses, "updates");
}

function showNeighbours(neighbours) {
  at("neighbours").replaceChildren(...neighbours.map((each) => {
    const row = document.createElement("tr");
    const [name, link, silent, final] = ["", "", "", ""].map(() => row.appendChild(document.createElement("td")));
    const kind = { "up": "good", "one way": "open" }[each.link] || "bad";
    name.textContent = each.name;
    link.append(Object.assign(document.createElement("span"), {
      className: `chip ${kind}`, textContent: each.link,
    }));
    silent.className = "number";
    silent.textContent = since(each.silent_seconds);
    final.textContent = each.final ? "yes" : "no";
    return row;
  }));
}

function showPrivacy(now) {
  const most = now.may_contribute;
  at("spent").hidden = most === null;
  if (most === null) {
    put("contributions", "The plan adds no noise to the model: contributions are neither limited nor counted.");
  } else {
    put("contributions", `${now.contributions} of at most ${most} contributions; ${Math.max(0, most - now.contributions)} are left. Then this node passes the token on unchanged.`);
    at("spent").value = now.contributions / Math.max(1, most);
  }
  const refusals = Object.entries(now.counters.refusals || {});
  put("refusals", refusals.length ? `Refused: ${refusals.map(([why, times]) => `${times} × ${why}`).join(", ")}.` : "Nothing was refused.");
}

listen(begin, look, () => { chip("phase", "bad", "the node has ended, or does not answer"); });

/* page.js - what the pages of a comparison and of a verification share: elements, numbers, facts of a wrong operator, plot, table. */
const $ = id => document.getElementById(id);
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
function make(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties || {})) {
    if (key === "style" || key.startsWith("aria-")) element.setAttribute(key, value); else element[key] = value;
  }
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  return element;
}
const number = x => x === null || x === undefined ? "" : typeof x === "string" ? x : x === 0 ? "0" : Math.abs(x) >= 1e-3 && Math.abs(x) < 1e6 ? String(Number(x.toPrecision(4))) : x.toExponential(2);
const percent = x => x === null || x === undefined ? "" : number(Number((100 * x).toPrecision(2))) + " %";
const count = x => x.toLocaleString("en-US");
const counted = (n, one, more) => count(n) + " " + (n === 1 ? one : more);
/* Two values with as many digits as it takes to tell them apart. */
function apart(a, b) {
  if (typeof a === "string" || typeof b === "string" || a === b) return [number(a), number(b)];
  let digits = 4;
  while (digits < 17 && a.toPrecision(digits) === b.toPrecision(digits)) digits++;
  return digits === 4 ? [number(a), number(b)] : [a, b].map(x => String(Number(x.toPrecision(digits))));
}
function coordinates(index, shape) {
  const found = [];
  for (const extent of [...shape].reverse()) { found.unshift(index % extent); index = Math.floor(index / extent); }
  return found.join(", ");
}

/* ---- an operator of a verification ---- */
const VERIFIED = { "exact": "--same", "rounding": "--close", "biased": "--other", "wrong": "--different", "not replayed": "--undefined" };
const isWrong = row => row.verdict === "wrong" || row.verdict === "biased";
const calledAt = r => (r.rank > 0 ? "rank " + r.rank + ", " : "") + "graph " + r.graph + ", step " + r.step;
function operatorFacts(r) {
  const list = make("dl");
  const fact = (name, ...values) => values.some(v => v !== "" && v !== null) && list.append(make("dt", { textContent: name }), make("dd", { className: "mono" }, ...values));
  fact("source", r.source || "", r.code ? make("pre", { textContent: r.code }) : null);
  fact("module", r.module);
  fact("where", calledAt(r) + ", " + r.slot);
  fact("result", r.dtype + " [" + r.shape.join(", ") + "]");
  if (r.ratio !== null) fact("size", "error " + number(r.ratio) + " times what rounding allows" + (r.max_ratio === null ? "" : ", at the worst element " + number(r.max_ratio) + " times") + (r.ratio_usual === null ? "" : "; usual on this machine " + number(r.ratio_usual)));
  if (r.misrounded !== null) fact("shape", percent(r.misrounded) + " not the correctly rounded result" + (r.misrounded_usual === null ? "" : "; " + percent(r.misrounded_usual) + " is usual") + (r.up + r.down > 0 ? " (" + count(r.up) + " too large, " + count(r.down) + " too small)" : ""));
  fact("reason", r.reason);
  if (r.downstream && r.downstream.results) fact("carried on", "to " + counted(r.downstream.results, "later tensor that differs", "later tensors that differ") + " only because of it, first " + r.downstream.first + (r.downstream.first_source ? " at " + r.downstream.first_source : ""));
  if (isWrong(r)) for (const [i, w] of r.worst.slice(0, 5).entries()) { const [saved, exact] = apart(w.saved, w.exact); fact(i ? "" : "worst", "at [" + coordinates(w.index, r.shape) + "]: saved " + saved + ", exact " + exact); }
  return list;
}
/* A card for each of the first few wrong operators, and a list of the rest; `choose` shows one of them, or is null. */
function wrongOperators(wrong, parent, choose) {
  for (const r of wrong.slice(0, 4)) parent.append(make("div", { className: "card origin", style: "margin-top:14px" }, make("h3", { textContent: r.node + "  " }, make("span", { className: "soft mono", textContent: r.target })), make("div", { className: "why", textContent: r.verdict === "biased" ? "right in size, but not as rounding falls" : "its error is more than rounding allows" }), operatorFacts(r)));
  if (wrong.length <= 4) return;
  const items = make("ul");
  for (const r of wrong.slice(4)) {
    const name = choose ? make("button", { type: "button", className: "link", textContent: r.node }) : r.node;
    if (choose) name.addEventListener("click", () => choose(r));
    items.append(make("li", {}, name, make("span", { className: "soft", textContent: "  " + r.target + "  " + calledAt(r) + ", " + r.verdict })));
  }
  parent.append(make("details", { className: "card" }, make("summary", { textContent: count(wrong.length - 4) + " more" }), items));
}

/*
 * Values over the order of execution, on a logarithmic scale. Points are [value, colour, row, radius]; `bounds` are
 * [index, label] where a step begins; `draw` adds lines, with functions from an index and a value to a place.
 */
function makePlot({ points, what, atLeast, atMost, bounds = [], draw, tipOf, choose }) {
  const canvas = $("plot"), tip = $("tip");
  let low = 0, high = Math.max(1, points.length), drag = null, top = atLeast, bottom = atMost;
  for (const [y] of points) if (y > 0 && isFinite(y)) { top = Math.max(top, y); bottom = Math.min(bottom, y); }
  const yTop = Math.ceil(Math.log10(top)), yBottom = Math.max(yTop - 14, Math.min(yTop - 2, Math.floor(Math.log10(bottom)))); /* below that it is as good as zero */
  const margin = { left: 54, right: 14, top: bounds.length > 1 ? 28 : 12, bottom: 30 };
  const X = (i, w) => margin.left + (i - low + 0.5) / (high - low) * (w - margin.left - margin.right);
  const Y = (y, h) => y === 0 || y === null ? h - margin.bottom : y === Infinity ? margin.top : margin.top + (yTop - Math.max(yBottom, Math.log10(y))) / (yTop - yBottom) * (h - margin.top - margin.bottom - 14);
  function paint() {
    const ratio = devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight, c = canvas.getContext("2d");
    canvas.width = w * ratio; canvas.height = h * ratio; c.scale(ratio, ratio); c.clearRect(0, 0, w, h);
    c.font = "11px system-ui, sans-serif"; c.fillStyle = css("--soft"); c.strokeStyle = css("--line"); c.textAlign = "right";
    const across = y => { c.beginPath(); c.moveTo(margin.left, y); c.lineTo(w - margin.right, y); c.stroke(); };
    const down = x => { c.beginPath(); c.moveTo(x, margin.top); c.lineTo(x, h - margin.bottom); c.stroke(); };
    for (let e = yTop; e >= yBottom; e -= Math.max(1, Math.ceil((yTop - yBottom) / 8))) { across(Y(10 ** e, h)); c.fillText("1e" + e, margin.left - 8, Y(10 ** e, h) + 4); }
    c.fillText("0", margin.left - 8, h - margin.bottom + 4); c.textAlign = "center";
    c.fillText(what + " in order of execution" + (low > 0 || high < points.length ? " (" + count(Math.floor(low) + 1) + " to " + count(Math.ceil(high)) + ")" : ""), w / 2, h - 8);
    c.save(); c.globalAlpha = 0.7; c.textAlign = "left";
    let used = 0;
    for (const [at, label] of bounds) if (bounds.length > 1 && (at > low && at < high || at === 0 && low === 0)) {
      const x = X(at - 0.5, w); if (at > 0) down(x);
      if (x - used > 0) { c.fillText(label, x + 4, margin.top - 14); used = x + c.measureText(label).width + 16; }
    }
    c.restore();
    const colours = new Map();
    for (let i = Math.max(0, Math.floor(low)); i < Math.min(points.length, Math.ceil(high)); i++) {
      const [y, colour, , radius] = points[i];
      if (!colours.has(colour)) colours.set(colour, css(colour));
      c.fillStyle = colours.get(colour); c.beginPath(); c.arc(X(i, w), Y(y, h), radius, 0, 6.3); c.fill();
    }
    c.strokeStyle = css("--different"); c.setLineDash([3, 4]); draw(i => down(X(i, w)), y => across(Y(y, h))); c.setLineDash([]);
    if (drag) { c.fillStyle = css("--accent"); c.globalAlpha = 0.15; c.fillRect(Math.min(...drag), margin.top, Math.abs(drag[1] - drag[0]), h - margin.top - margin.bottom); c.globalAlpha = 1; }
  }
  const indexAt = x => low + (x - margin.left) / (canvas.clientWidth - margin.left - margin.right) * (high - low);
  function nearest(event) {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top, middle = Math.floor(indexAt(x)), reach = Math.max(2, Math.ceil((high - low) / box.width * 8));
    let best = null, distance = 14 * 14;
    for (let i = Math.max(0, middle - reach); i <= Math.min(points.length - 1, middle + reach); i++) { const d = (X(i, box.width) - x) ** 2 + (Y(points[i][0], box.height) - y) ** 2; if (d < distance) { distance = d; best = points[i]; } }
    return best;
  }
  const left = e => e.clientX - canvas.getBoundingClientRect().left;
  canvas.addEventListener("pointerdown", e => { drag = [left(e), left(e)]; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener("pointermove", e => {
    if (drag) { drag[1] = left(e); paint(); return; }
    const p = nearest(e), box = canvas.getBoundingClientRect();
    tip.style.display = p ? "block" : "none";
    if (p) { tip.textContent = tipOf(p[2]); tip.style.left = Math.min(left(e) + 14, box.width - 330) + "px"; tip.style.top = e.clientY - box.top + 26 + "px"; }
  });
  canvas.addEventListener("pointerup", e => {
    const [a, b] = drag || [0, 0]; drag = null;
    if (Math.abs(a - b) > 6) { const from = indexAt(Math.min(a, b)), to = indexAt(Math.max(a, b)); if (to - from >= 2) { low = Math.max(0, from); high = Math.min(points.length, to); } }
    else { const p = nearest(e); if (p) choose(p[2]); }
    paint();
  });
  canvas.addEventListener("pointerleave", () => { tip.style.display = "none"; });
  canvas.addEventListener("dblclick", () => { low = 0; high = Math.max(1, points.length); paint(); });
  canvas.addEventListener("wheel", e => { e.preventDefault(); const at = indexAt(left(e)), k = e.deltaY > 0 ? 1.25 : 0.8, span = Math.min(points.length, Math.max(4, (high - low) * k)); low = Math.max(0, at - (at - low) * span / (high - low)); high = Math.min(points.length || 1, low + span); paint(); }, { passive: false });
  new ResizeObserver(paint).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  paint();
}
const legend = (name, colour) => $("legend").append(make("span", {}, make("span", colour ? { className: "dot", style: "background:var(" + colour + ")" } : { className: "dash" }), name));

/*
 * The table: only the rows in view exist. Columns are [title, width, side, key, text]; kinds are [key, name, number,
 * colour] of the chips, and `kindOf` and `colourOf` say what a row is; `describe` makes the elements of a chosen row.
 */
function makeTable({ rows, what, columns, kinds, kindOf, colourOf, titleOf, haystack, describe }) {
  const ROW = 26, scroll = $("scroll"), body = $("rows");
  const VERDICT = columns.findIndex(([title]) => title === "verdict"), whole = columns.reduce((sum, [, width]) => sum + width, 0);
  let order = rows.map((_, i) => i), shown = order, sort = null, query = "", only = null, chosen = -1, cache = null;
  scroll.firstElementChild.style.minWidth = 980 + 64 * Math.max(0, columns.length - 9) + "px";
  columns.forEach(([title, width, side], c) => {
    $("widths").append(make("col", { style: "width:" + 100 * width / whole + "%" }));
    const head = make("th", { textContent: title, className: side, tabIndex: 0, "aria-sort": "none" });
    head.addEventListener("click", () => { sort = sort && sort[0] === c ? [c, -sort[1]] : [c, c < VERDICT ? 1 : -1]; arrange(); });
    head.addEventListener("keydown", e => { if (e.key === "Enter") head.click(); });
    $("head").append(head);
  });
  function arrange() {
    const keys = rows.map(columns[sort[0]][3]);
    order = rows.map((_, i) => i).sort((a, b) => keys[a] === keys[b] ? a - b : keys[a] === null ? 1 : keys[b] === null ? -1 : (keys[a] < keys[b] ? -1 : 1) * sort[1]);
    [...$("head").children].forEach((head, c) => { head.textContent = columns[c][0] + (sort[0] === c ? sort[1] > 0 ? " ↑" : " ↓" : ""); head.setAttribute("aria-sort", sort[0] === c ? sort[1] > 0 ? "ascending" : "descending" : "none"); });
    filter();
  }
  function filter() {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length && !cache) cache = rows.map(row => haystack(row).toLowerCase());
    shown = order.filter(i => (only === null || kindOf(rows[i]) === only) && words.every(w => cache[i].includes(w)));
    $("shown").textContent = count(shown.length) + " of " + count(rows.length) + " " + what;
    scroll.scrollTop = 0;
    paint();
  }
  function paint() {
    const first = Math.max(0, Math.floor(scroll.scrollTop / ROW) - 8), last = Math.min(shown.length, first + Math.ceil(scroll.clientHeight / ROW) + 16), made = [make("tr", { style: "height:" + first * ROW + "px" })];
    for (let k = first; k < last; k++) {
      const i = shown[k], row = make("tr", { className: i === chosen ? "chosen" : "" });
      columns.forEach(([, , side, , text], c) => { const cell = make("td", { className: side, textContent: text(rows[i]), title: c < 2 ? titleOf(rows[i], c) : "" }); if (c === VERDICT) cell.style.color = "var(" + colourOf(rows[i]) + ")"; row.append(cell); });
      row.addEventListener("click", () => choose(i, false));
      made.push(row);
    }
    made.push(make("tr", { style: "height:" + (shown.length - last) * ROW + "px" }));
    body.replaceChildren(...made);
  }
  function choose(i, scrollTo) {
    chosen = i;
    $("detail").replaceChildren(...describe(rows[i]));
    $("detail").style.display = "block";
    if (scrollTo) { let k = shown.indexOf(i); if (k < 0) { query = ""; only = null; $("search").value = ""; chips(); filter(); k = shown.indexOf(i); } scroll.scrollTop = Math.max(0, k * ROW - scroll.clientHeight / 2); scroll.scrollIntoView({ block: "nearest" }); }
    paint();
  }
  function chips() {
    $("chips").replaceChildren();
    for (const [kind, name, n, colour] of kinds) {
      if (!n) continue;
      const chip = make("button", { type: "button", "aria-pressed": String(only === kind) }, make("span", { className: "dot", style: "background:var(" + colour + ")" }), name + " " + count(n));
      chip.addEventListener("click", () => { only = only === kind ? null : kind; chips(); filter(); });
      $("chips").append(chip, " ");
    }
  }
  scroll.addEventListener("scroll", paint, { passive: true });
  $("search").addEventListener("input", e => { query = e.target.value; filter(); });
  chips(); filter();
  return { choose };
}

// The pictures of the page, drawn with D3 (version 5 or newer) from the JSON beside it.
"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");

for (const button of document.querySelectorAll("[data-copy]"))
  button.addEventListener("click", () => {
    const code = button.previousElementSibling;
    const done = () => { button.textContent = "Copied"; };
    const select = () => window.getSelection().selectAllChildren(code);
    if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(done, select);
    else select();
  });

const plots = document.getElementById("plots");
if (!plots || !data.tensors.length) return;

// --- data ----------------------------------------------------------------------------------------

function numbers(text, Type) {
  const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  return new Type(bytes.buffer);
}
for (const t of data.tensors) {
  t.picture.heads = numbers(t.picture.heads, Float32Array);
  t.picture.tiles = t.picture.tiles && numbers(t.picture.tiles, Float32Array);
  // Each the upper half of a float.
  for (const m of t.maps) m.worst = new Float32Array(Uint32Array.from(numbers(m.worst, Uint16Array), x => x << 16 >>> 0).buffer);
  for (const w of t.windows) {
    w.actual = numbers(w.actual, Float32Array);
    w.expected = numbers(w.expected, Float64Array);
    w.limit = numbers(w.limit, Float32Array);
  }
}
const axisName = { key: "key", kv_tile: "KV tile", split: "split", dim: "dim" };
// Of maps, whose numbers are kept in 16 bits.
const rough = x => ratio(x > 0 && isFinite(x) ? Number(x.toPrecision(2)) : x);
const ratio = x => x < 0 ? "not judged" : !isFinite(x) ? "no multiple of it" : x === 0 ? "0×" : x < 0.01 ? "< 0.01×"
  : x < 10 ? x.toFixed(2) + "×" : x < 1000 ? x.toFixed(0) + "×" : x.toExponential(1).replace("e+", "e") + "×";
const value = x => x !== 0 && Math.abs(x) < 1e-3 ? String(x.toExponential(8)).replace(/\.?0+e/, "e") : Number.isFinite(x) ? String(Number(x.toPrecision(9))) : Number.isNaN(x) ? "nan" : x > 0 ? "inf" : "-inf";

// --- colours: blue within the bound, yellow to dark red beyond it ----------------------------------

const ramps = {
  light: { none: "#0000", right: ["#e8f1f8", "#a9cce3"], wrong: ["#ffd166", "#f77f3a", "#c8102e", "#4a0010"], nan: "#a3119c" },
  dark: { none: "#0000", right: ["#15222d", "#2c5878"], wrong: ["#a9790f", "#e8641b", "#ff3045", "#ffb3bd"], nan: "#e056fd" },
};
const kDecades = 6;
function colour(x) {
  const ramp = dark.matches ? ramps.dark : ramps.light;
  if (x < 0) return ramp.none;
  if (!isFinite(x)) return ramp.nan;
  if (x <= 1) return d3.interpolateRgb(...ramp.right)(x);
  return d3.piecewise(d3.interpolateRgb, ramp.wrong)(Math.min(1, Math.log10(x) / kDecades));
}

// --- state ---------------------------------------------------------------------------------------

const first = data.first;
const state = { tensor: data.tensors.find(t => first && t.name === first.tensor) ||
                        data.tensors.find(t => t.name === "o") || data.tensors[0],
                batch: first ? first.batch : data.origin[0], head: first ? first.head : data.origin[1],
                cell: null };
if (first) state.cell = { query: first.query, column: first.column };

const element = (parent, kind, name, text) => {
  const e = document.createElement(kind);
  if (name) e.className = name;
  if (text !== undefined) e.textContent = text;
  parent.appendChild(e);
  return e;
};
const headIndex = () => (state.batch - data.origin[0]) * data.heads[1] + state.head - data.origin[1];
const headName = () => (data.batches > 1 ? `batch ${state.batch}, ` : "") + `head ${state.head}`;
const currentMap = () => state.tensor.maps.find(m => m.batch === state.batch && m.head === state.head);

// --- a heat map: canvas for the cells, SVG for the axes -----------------------------------------------

// Rows and columns are in cells of the tensor from (y0, x0) on; a bin is `by` of them.
function heatMap(host, o) {
  const margin = { left: 46, top: 34, right: 8, bottom: 6 };
  const room = Math.max(120, host.clientWidth - margin.left - margin.right);
  const width = Math.min(room, Math.max(220, Math.ceil(o.columns / o.byX) * 28));
  const height = Math.max(110, Math.min(440, Math.ceil(o.rows / o.byY) * 28));
  const box = element(host, "div", "map");
  box.style.width = width + margin.left + margin.right + "px";
  box.style.height = height + margin.top + margin.bottom + "px";
  const canvas = element(box, "canvas");
  const scale = window.devicePixelRatio || 1;
  canvas.width = width * scale, canvas.height = height * scale;
  Object.assign(canvas.style, { left: margin.left + "px", top: margin.top + "px", width: width + "px", height: height + "px" });
  const tip = element(host, "p", "tip", o.hint || "");
  const svg = d3.select(box).append("svg").attr("width", "100%").attr("height", "100%").attr("aria-hidden", "true");
  const gx = svg.append("g").attr("transform", `translate(${margin.left},${margin.top})`);
  const gy = svg.append("g").attr("transform", `translate(${margin.left},${margin.top})`);
  svg.append("text").attr("class", "label").attr("x", margin.left).attr("y", 11).text(o.xName && o.xName + " →");
  svg.append("text").attr("class", "label").attr("transform", `translate(11,${margin.top}) rotate(-90)`)
     .attr("text-anchor", "end").text("← " + o.yName);
  const x = d3.scaleLinear([o.x0, o.x0 + o.columns], [0, width]);
  const y = d3.scaleLinear([o.y0, o.y0 + o.rows], [0, height]);
  let zx = x, zy = y;

  const context = canvas.getContext("2d");
  function draw() {
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    const style = getComputedStyle(document.body);
    const across = Math.ceil(o.columns / o.byX), down = Math.ceil(o.rows / o.byY);
    for (let r = 0; r < down; ++r) {
      const top = zy(o.y0 + r * o.byY), bottom = zy(Math.min(o.y0 + (r + 1) * o.byY, o.y0 + o.rows));
      if (bottom < 0 || top > height) continue;
      for (let c = 0; c < across; ++c) {
        const left = zx(o.x0 + c * o.byX), right = zx(Math.min(o.x0 + (c + 1) * o.byX, o.x0 + o.columns));
        if (right < 0 || left > width) continue;
        const worst = o.at(r, c), gap = right - left > 6 && bottom - top > 6 ? 1 : 0;
        context.fillStyle = colour(worst);
        context.fillRect(left, top, right - left - gap + (gap ? 0 : 0.4), bottom - top - gap + (gap ? 0 : 0.4));
        if (worst < 0 || right - left < 52 || bottom - top < 15) continue;
        const [cr, cg, cb] = [d3.rgb(colour(worst))].flatMap(k => [k.r, k.g, k.b]);
        context.fillStyle = 0.3 * cr + 0.59 * cg + 0.11 * cb > 140 ? "#111" : "#fff";
        context.font = "11px ui-monospace, monospace";
        context.textAlign = "center", context.textBaseline = "middle";
        context.fillText(o.label ? o.label(r, c) : ratio(worst), (left + right) / 2, (top + bottom) / 2, right - left - 4);
      }
    }
    for (const line of o.lines || []) {  // tile borders
      const at = line.x === undefined ? zy(line.y) : zx(line.x);
      context.fillStyle = style.getPropertyValue("--line");
      if (line.x === undefined) context.fillRect(0, at - 0.5, width, 1);
      else context.fillRect(at - 0.5, 0, 1, height);
    }
    const mark = o.mark && o.mark();
    if (mark) {
      const left = zx(mark.x), top = zy(mark.y), w = Math.max(7, zx(mark.x + mark.w) - left), h = Math.max(7, zy(mark.y + mark.h) - top);
      for (const [line, colour] of [[5, "--card"], [2, "--text"]]) {  // to be seen on any colour
        context.lineWidth = line;
        context.strokeStyle = style.getPropertyValue(colour);
        context.strokeRect(left - 2, top - 2, w + 4, h + 4);
      }
    }
    const integers = d => Number.isInteger(d) ? d : "";
    if (o.xName) gx.call(d3.axisTop(zx).ticks(Math.max(2, width / 60)).tickFormat(integers).tickSizeOuter(0));
    gy.call(d3.axisLeft(zy).ticks(Math.max(2, height / 40)).tickFormat(integers).tickSizeOuter(0));
  }

  const find = event => {
    const at = canvas.getBoundingClientRect();
    const column = Math.floor(zx.invert(event.clientX - at.left)), row = Math.floor(zy.invert(event.clientY - at.top));
    if (column < o.x0 || column >= o.x0 + o.columns || row < o.y0 || row >= o.y0 + o.rows) return null;
    const r = Math.floor((row - o.y0) / o.byY), c = Math.floor((column - o.x0) / o.byX);
    return { row, column, r, c };
  };
  canvas.addEventListener("mousemove", event => {
    const hit = find(event);
    if (hit) tip.textContent = o.tell(hit);
  });
  canvas.addEventListener("mouseleave", () => { tip.textContent = o.hint || ""; });
  canvas.addEventListener("click", event => {
    const hit = find(event);
    if (hit && o.pick) { tip.textContent = o.tell(hit); o.pick(hit); draw(); }
  });

  let zoomed = 1;
  const wide = o.columns / o.byX, down = o.rows / o.byY;  // bins
  const most = Math.max(1, wide / 4, down / 4), extent = [[0, 0], [width, height]];
  const zoom = d3.zoom().scaleExtent([1, most]).extent(extent).translateExtent(extent)
    .filter(function (e) {
      const event = e && e.type ? e : d3.event;
      if (event.type === "wheel") return event.ctrlKey || zoomed > 1;
      if (event.type.startsWith("touch")) return event.touches.length > 1 || zoomed > 1;
      return !event.button;
    })
    .on("zoom", () => {
      const t = d3.zoomTransform(canvas);
      zoomed = t.k;
      zx = t.rescaleX(x), zy = t.rescaleY(y);
      draw();
    });
  const selection = d3.select(canvas);
  // The middle of the view, as far as the map has so much on either side.
  const look = (cx, cy, k) => zoom.transform(selection, zoom.constrain()(
    d3.zoomIdentity.translate(width / 2, height / 2).scale(k).translate(-x(cx), -y(cy)), extent, extent));
  if (o.zooms) {
    selection.call(zoom);
    const tools = element(host, "div", "tools");
    const tool = (text, what) => element(tools, "button", "", text).addEventListener("click", what);
    tool("+", () => zoom.scaleBy(selection, 2));
    tool("−", () => zoom.scaleBy(selection, 0.5));
    tool("All", () => zoom.transform(selection, d3.zoomIdentity));
    if (o.mark && o.mark())
      tool("To the cell", () => {
        // As large as values need to be written in the cells.
        const m = o.mark(), k = Math.max(1, Math.min(most, Math.max(60 * wide / width, 17 * down / height)));
        look(m.x + m.w / 2, m.y + m.h / 2, k);
      });
    tools.querySelectorAll("button").forEach(b => { b.type = "button"; });
  }
  draw();
  return {
    show(x0, x1, y0, y1) {
      const k = Math.max(1, Math.min(most, Math.min(o.columns / (x1 - x0), o.rows / (y1 - y0))));
      look((x0 + x1) / 2, (y0 + y1) / 2, k);
    },
  };
}

// --- the parts of the section -------------------------------------------------------------------------

function chips() {
  const bar = element(plots, "div", "chips");
  bar.setAttribute("role", "group");
  for (const t of data.tensors) {
    const chip = element(bar, "button", t.mismatched ? "wrong" : t.compared ? "right" : "", t.name);
    chip.type = "button";
    chip.title = `${t.stage}: ${t.mismatched.toLocaleString("en")} of ${t.compared.toLocaleString("en")} wrong`;
    chip.setAttribute("aria-pressed", t === state.tensor);
    chip.addEventListener("click", () => {
      if (t !== state.tensor) state.cell = first && first.tensor === t.name ? { query: first.query, column: first.column } : null;
      state.tensor = t;
      draw();
    });
  }
}

function strip() {
  const worst = state.tensor.picture.heads;
  if (worst.length < 2) return;
  const box = element(plots, "figure", "strip");
  element(box, "figcaption", "", `Worst of ${state.tensor.name} in each ${data.heads[0] > 1 ? "batch entry (down) and head" : "head"}`);
  const size = Math.max(8, Math.min(34, (box.clientWidth - 4) / data.heads[1]));
  const svg = d3.select(box).append("svg").attr("width", size * data.heads[1] + 4).attr("height", size * data.heads[0] + 4);
  const cells = d3.range(worst.length);
  const chosen = headIndex();
  svg.selectAll("rect").data(cells).enter().append("rect")
     .attr("x", i => 2 + i % data.heads[1] * size).attr("y", i => 2 + Math.floor(i / data.heads[1]) * size)
     .attr("width", size - 2).attr("height", size - 2).attr("rx", 3)
     .attr("class", i => i === chosen ? "cell chosen" : "cell").attr("fill", i => colour(worst[i]))
     .on("click", function () {
       const i = d3.select(this).datum();
       state.batch = data.origin[0] + Math.floor(i / data.heads[1]);
       state.head = data.origin[1] + i % data.heads[1];
       state.cell = first && first.batch === state.batch && first.head === state.head && first.tensor === state.tensor.name
         ? { query: first.query, column: first.column } : null;
       draw();
     })
     .append("title").text(i => `head ${data.origin[1] + i % data.heads[1]}: ${ratio(worst[i])}`);
  element(box, "p", "tip", `${headName()}: ${ratio(worst[chosen])} the ${data.limit}`);
}

let detail = null;

function overview(panel) {
  const p = state.tensor.picture, per = p.down * p.wide, tile0 = Math.floor(data.origin[2] / data.tile[0]);
  element(panel, "figcaption", "", `${state.tensor.name}, ${headName()}: query tile × ${p.axis}`);
  heatMap(panel, {
    rows: p.down, columns: p.wide, byX: 1, byY: 1, x0: 0, y0: tile0, xName: p.axis, yName: "query tile",
    at: (r, c) => p.tiles[headIndex() * per + r * p.wide + c],
    hint: "A click shows the tile beside it.",
    tell: hit => `query tile ${hit.row}, ${p.axis} ${hit.column}: ${ratio(p.tiles[headIndex() * per + hit.r * p.wide + hit.c])}`,
    pick: hit => {
      const m = currentMap();
      if (!detail || !m) return;
      const keys = state.tensor.across === "key";
      detail.show(keys ? hit.column * data.tile[1] : 0, keys ? (hit.column + 1) * data.tile[1] : m.columns,
                  hit.row * data.tile[0], (hit.row + 1) * data.tile[0]);
    },
  });
}

// The values of a cell, where they are in the file.
function valuesOf(query, column) {
  for (const w of state.tensor.windows) {
    if (w.batch !== state.batch || w.head !== state.head) continue;
    const r = query - w.query, c = column - w.column;
    if (r < 0 || r >= w.rows || c < 0 || c >= w.columns) continue;
    const i = r * w.columns + c;
    return { actual: w.actual[i], expected: w.expected[i], limit: w.limit[i], of: w.of };
  }
  return null;
}

function cells(panel) {
  const m = currentMap();
  const t = state.tensor, across = axisName[t.across] || "";
  if (!m) {
    element(panel, "figcaption", "", `${t.name}, ${headName()}`);
    const kept = t.maps.map(k => (data.batches > 1 ? `batch ${k.batch}, ` : "") + `head ${k.head}`).join("; ");
    element(panel, "p", "unknown", `Of ${t.name} this file keeps single cells of ${kept || "no head"} alone.`);
    return;
  }
  element(panel, "figcaption", "", `${t.name}, ${headName()}: ${across ? "query × " + across : "by query"}` +
    (t.between ? `, the worst ${axisName[t.between]} of each` : "") +
    (m.by_query > 1 || m.by_column > 1 ? `; the worst of each ${m.by_query} × ${m.by_column} cells` : ""));
  const wide = Math.ceil(m.columns / m.by_column);
  const lines = [];
  if (data.tile[0] > 7) for (let q = Math.ceil((data.origin[2] + 1) / data.tile[0]) * data.tile[0]; q < data.origin[2] + m.queries; q += data.tile[0]) lines.push({ y: q });
  if (t.across === "key") for (let k = data.tile[1]; k < m.columns; k += data.tile[1]) lines.push({ x: k });
  const single = m.by_query === 1 && m.by_column === 1;
  detail = heatMap(panel, {
    rows: m.queries, columns: m.columns, byX: m.by_column, byY: m.by_query, x0: 0, y0: data.origin[2],
    xName: across, yName: "query", lines: lines.length > 40 ? [] : lines, zooms: true,
    at: (r, c) => m.worst[r * wide + c],
    label: (r, c) => {
      const v = single && valuesOf(data.origin[2] + r, c);
      return v ? value(Number(v.actual.toPrecision(4))) : rough(m.worst[r * wide + c]);
    },
    hint: "Drag, pinch or Ctrl + wheel to zoom; a click shows the cell.",
    tell: hit => `query ${hit.row}${across ? `, ${across} ${hit.column}` : ""}: ${rough(m.worst[hit.r * wide + hit.c])} the ${data.limit}`,
    pick: hit => {
      state.cell = { query: hit.row, column: hit.column };
      inspector(document.getElementById("cell"));
    },
    mark: () => state.cell && {  // its bin
      x: state.cell.column - state.cell.column % m.by_column, w: m.by_column,
      y: state.cell.query - (state.cell.query - data.origin[2]) % m.by_query, h: m.by_query,
    },
  });
}

function inspector(host) {
  host.textContent = "";
  const t = state.tensor, cell = state.cell;
  if (!cell) { element(host, "p", "small", "Choose a cell in the map to see its value."); return; }
  const isFirst = first && first.tensor === t.name && first.batch === state.batch && first.head === state.head &&
                  first.query === cell.query && first.column === cell.column;
  element(host, "figcaption", "", isFirst ? "The first wrong cell" : "The cell");
  const table = element(host, "table");
  const row = (what, text, kind) => {
    const tr = element(table, "tr", kind || "");
    element(tr, "th", "", what);
    element(tr, "td", "", text);
  };
  const v = valuesOf(cell.query, cell.column);
  row("tensor", `${t.name} (${t.stage})`);
  row("place", `${headName()}, query ${cell.query}` + (t.across ? `, ${axisName[t.across]} ${cell.column}` : "") +
               (v && v.of !== null ? `, ${axisName[t.between]} ${v.of}` : ""));
  if (v) {
    row("value", value(v.actual));
    row("expected", value(v.expected));
    row(data.limit, value(Number(v.limit.toPrecision(4))));
    const error = Math.abs(v.actual - v.expected);
    row("error", value(Number(error.toPrecision(4))));
    const same = v.actual === v.expected || (Number.isNaN(v.actual) && Number.isNaN(v.expected));
    row(`error / ${data.limit}`, ratio(same ? 0 : Number.isNaN(error) ? Infinity : error / v.limit), error <= v.limit || same ? "right" : "wrong");
    return;
  }
  const m = currentMap(), wide = Math.ceil(m.columns / m.by_column);
  row(`error / ${data.limit}`, rough(m.worst[Math.floor((cell.query - data.origin[2]) / m.by_query) * wide + Math.floor(cell.column / m.by_column)]) +
      (m.by_query * m.by_column > 1 ? " (the worst of its group)" : ""));
  element(host, "p", "small", "Values are in this file around the first and the worst wrong cell alone." +
    (data.show ? " Here:" : " attn-diag show has those of a dump."));
  if (data.show)
    element(host, "code", "line", `${data.show} --stage ${t.stage}` + (data.batches > 1 ? ` --batch-index ${state.batch}` : "") +
      ` --head ${state.head} --query ${cell.query}`);
}

function histogram(panel, counts, names, title, wrongFrom, none = "No cell was judged.") {
  element(panel, "figcaption", "", title);
  let low = counts.findIndex(c => c > 0), high = counts.length - 1;
  while (high > 0 && counts[high] === 0) --high;
  if (low < 0) { element(panel, "p", "small", none); return; }
  low = Math.max(0, low - 1), high = Math.min(counts.length - 1, high + 1);
  const bars = d3.range(low, high + 1);
  const margin = { left: 52, right: 6, top: 8, bottom: 46 }, width = panel.clientWidth, height = 210;
  const svg = d3.select(panel).append("svg").attr("width", width).attr("height", height).attr("role", "img").attr("aria-label", title);
  const x = d3.scaleBand(bars, [margin.left, width - margin.right]).padding(0.15);
  const y = d3.scaleSymlog([0, d3.max(counts)], [height - margin.bottom, margin.top]).constant(0.5);
  svg.append("g").attr("transform", `translate(${margin.left},0)`)
     .call(d3.axisLeft(y).tickValues([0, 1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9].filter(v => v <= d3.max(counts))).tickFormat(d3.format("~s")).tickSizeOuter(0));
  svg.selectAll("rect").data(bars).enter().append("rect")
     .attr("x", i => x(i)).attr("width", x.bandwidth()).attr("y", i => y(counts[i])).attr("height", i => y(0) - y(counts[i]))
     .attr("class", i => i >= wrongFrom ? "bar wrong" : "bar")
     .append("title").text(i => `${names[i]}: ${counts[i].toLocaleString("en")} cells`);
  const every = Math.ceil(bars.length / Math.max(4, (width - margin.left) / 34));
  svg.append("g").attr("transform", `translate(0,${height - margin.bottom})`)
     .call(d3.axisBottom(x).tickValues(bars.filter(i => (i - low) % every === 0)).tickFormat(i => names[i]).tickSizeOuter(0))
     .selectAll("text").attr("transform", "rotate(-35)").attr("text-anchor", "end");
}

function histograms() {
  const t = state.tensor, host = element(plots, "div", "panels");
  const left = element(host, "figure", "panel"), right = element(host, "figure", "panel");
  const power = (digit, e) => (e < 4 ? String(Number((digit * Math.pow(10, e)).toPrecision(1))) : `${digit}e${e}`) + "×";
  const [from, to] = data.exponents, limits = ["0"];
  for (let i = 0; i <= 2 * (to - from); ++i) limits.push("≤ " + (i % 2 ? power(3, from + (i - 1) / 2) : power(1, from + i / 2)));
  limits.push("more", "not finite");
  histogram(left, t.by_limit, limits, `Cells of ${t.name} by error / ${data.limit}, all heads`, limits.indexOf("≤ 1×") + 1);
  const ulps = ["≤ ½"];
  for (let i = 0; i < t.by_ulp.length - 2; ++i) ulps.push("≤ " + (i < 14 ? String(2 ** i) : "2^" + i));
  ulps.push("more");
  histogram(right, t.by_ulp, ulps, `Cells of ${t.name} by error in ULPs of ${t.storage}, all heads, where rounding leaves half of the digits`, ulps.length,
    "Rounding may take more than half of the digits of every cell: ULPs would say nothing.");
}

function legend() {
  const box = element(plots, "div", "legend");
  const item = (x, text) => {
    const one = element(box, "span");
    element(one, "i").style.background = x < 0 ? "transparent" : colour(x);
    one.appendChild(document.createTextNode(text));
  };
  element(box, "b", "", `error / ${data.limit}`);
  for (const [x, text] of [[-1, "masked, not judged"], [0.02, "0"], [1, "1×: right up to here"], [1.01, "more"], [10, "10×"], [100, "100×"], [1000, "1,000×"], [1e4, "10,000×"], [1e6, "1,000,000×"], [Infinity, "not finite"]])
    item(x, text);
}

function draw() {
  plots.textContent = "";
  detail = null;
  chips();
  strip();
  // All of them, before one takes the room that there is.
  const panels = element(plots, "div", "panels"), p = state.tensor.picture;
  const tiles = p.tiles && p.wide > 1 ? element(panels, "figure", "panel narrow") : null;
  const map = element(panels, "figure", "panel"), cell = element(panels, "figure", "panel narrow");
  cell.id = "cell";
  if (tiles) overview(tiles);
  cells(map);
  inspector(cell);
  legend();
  histograms();
}

draw();
dark.addEventListener("change", draw);
let last = plots.clientWidth;
window.addEventListener("resize", () => {
  if (plots.clientWidth === last) return;
  last = plots.clientWidth;
  draw();
});
})();

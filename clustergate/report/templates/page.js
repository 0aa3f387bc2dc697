"use strict";
// The page is complete without this: it adds curves to point at, a filter, buttons that copy, and
// opens what is linked to.
(function () {
  const cases = Array.from(document.querySelectorAll("details.case"));
  const tools = document.getElementById("tools");

  function button(label, action) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = label;
    made.addEventListener("click", action);
    return made;
  }

  function filter(word) {
    for (const one of cases) {
      const summary = one.querySelector("summary").textContent.toLowerCase();
      let shown = summary.includes(word);
      for (const row of one.querySelectorAll("tbody tr")) {
        const found = summary.includes(word) || row.textContent.toLowerCase().includes(word);
        row.hidden = !found;
        shown = shown || found;
      }
      one.hidden = !shown;
      if (word) { one.open = shown; }
    }
  }

  function openLinked() {
    const target = document.getElementById(location.hash.slice(1));
    if (target && target.classList.contains("case")) { target.open = true; target.scrollIntoView(); }
  }

  if (tools) {
    const input = document.createElement("input");
    input.type = "search";
    input.placeholder = "filter: a benchmark, a metric, a stack, a verdict";
    input.setAttribute("aria-label", "filter the figures");
    input.addEventListener("input", function () { filter(input.value.trim().toLowerCase()); });
    tools.append(
      input,
      button("unfold all", function () { for (const one of cases) { one.open = true; } }),
      button("fold all", function () { for (const one of cases) { one.open = false; } })
    );
  }
  for (const command of document.querySelectorAll("pre.command")) {
    const copy = button("copy", function () {
      navigator.clipboard.writeText(command.textContent).then(
        function () { copy.textContent = "copied"; },
        function () { getSelection().selectAllChildren(command); copy.textContent = "selected"; }
      );
    });
    copy.className = "copy";
    command.previousElementSibling.append(copy);
  }
  // --- curves to point at: in all plots the same size, from the keyboard too ---------------------

  const SIGNS = { o: "●", s: "■", "^": "▲", D: "◆", v: "▼", "": "–" };
  const RADIUS = 3;
  const hidden = new Set();
  const live = new Map();

  function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

  function tick(value) {
    const [size, prefix] = value >= 1e9 ? [1e9, " G"] : value >= 1e6 ? [1e6, " M"] : value >= 1e4 ? [1e3, " k"] : [1, ""];
    return Number((value / size).toPrecision(4)) + prefix;
  }

  function trace(context, sign, x, y, r) {
    context.beginPath();
    if (sign === "o") { context.arc(x, y, r, 0, 2 * Math.PI); }
    const corners = { s: [[-1, -1], [1, -1], [1, 1], [-1, 1]], "^": [[0, -1], [1, 1], [-1, 1]], D: [[0, -1], [1, 0], [0, 1], [-1, 0]], v: [[0, 1], [1, -1], [-1, -1]] }[sign] || [];
    for (const [across, down] of corners) { context.lineTo(x + r * across, y + r * down); }
    context.closePath();
  }

  function drawLine(plot, told, index) {
    const line = told.lines[index], context = plot.ctx, scale = devicePixelRatio;
    if (hidden.has(line.name)) { return; }
    const at = (k) => plot.valToPos(told.sizes[k][0], "x", true), up = (value) => plot.valToPos(value, "y", true);
    // A band does not go over a point without an interval.
    const runs = [[]];
    line.values.forEach(function (value, k) {
      if (value === null) { return; }
      if (line.low[k] === null || line.high[k] === null) { runs.push([]); } else { runs[runs.length - 1].push(k); }
    });
    context.save();
    context.strokeStyle = context.fillStyle = colour(line.style[0] < 7 ? "--s" + line.style[0] : "--axis");
    context.lineWidth = scale;
    context.setLineDash([]);
    for (const known of runs) {
      context.beginPath();
      if (line.band && known.length > 1) {
        known.forEach((k) => context.lineTo(at(k), up(line.low[k])));
        known.reverse().forEach((k) => context.lineTo(at(k), up(line.high[k])));
        context.globalAlpha = 0.22;
        context.fill();
        context.globalAlpha = 1;
      } else {
        known.forEach((k) => { context.moveTo(at(k), up(line.low[k])); context.lineTo(at(k), up(line.high[k])); });
        context.stroke();
      }
    }
    line.values.forEach(function (value, k) {
      if (value === null || !line.style[1] || at(k) < plot.bbox.left - 1 || at(k) > plot.bbox.left + plot.bbox.width + 1) { return; }
      trace(context, line.style[1], at(k), up(value), RADIUS * scale);
      context.fillStyle = line.doubtful.includes(k) ? colour("--page") : context.strokeStyle;
      context.fill();
      context.stroke();
    });
    context.restore();
  }

  // As many sizes as have room for their labels; the first and the last always.
  function sizeTicks(told, low, high, width) {
    const places = told.sizes.map((one) => one[0]).filter((place) => place >= low && place <= high);
    const apart = (42 * (high - low)) / width, last = places.pop(), shown = [];
    for (const place of places) {
      if (last - place >= apart && !(shown.length && place - shown[shown.length - 1] < apart)) { shown.push(place); }
    }
    return last === undefined ? shown : shown.concat(last);
  }

  function read(told, reading, index) {
    reading.replaceChildren();
    if (index === null || index === undefined) {
      reading.append(told.unit + " over " + told.along);
      return;
    }
    const size = document.createElement("b");
    size.textContent = told.sizes[index][1];
    reading.append(size);
    for (const line of told.lines) {
      if (line.values[index] === null || !line.style[1] || hidden.has(line.name)) { continue; }
      const sign = document.createElement("i");
      sign.className = "s" + line.style[0];
      sign.textContent = SIGNS[line.style[1]];
      sign.title = line.name;
      const name = document.createElement("span");
      name.className = "unseen";
      name.textContent = line.name + " ";
      reading.append(sign, name, tick(line.values[index]) + (line.doubtful.includes(index) ? "*" : ""));
    }
    reading.append(" " + told.unit);
  }

  function enliven(figure) {
    const told = JSON.parse(figure.dataset.curves), picture = figure.querySelector("svg");
    const x = told.sizes.map((one) => one[0]), last = x.length - 1;
    if (last < 1 || !picture.clientWidth) { return; }
    const reading = document.createElement("output");
    reading.className = "reading";
    const width = () => figure.clientWidth - 2 * parseFloat(getComputedStyle(figure).paddingLeft);
    const height = Math.round(picture.clientHeight);
    const axis = { stroke: () => colour("--ink"), grid: { stroke: () => colour("--grid"), width: 1 }, ticks: { show: false }, border: { show: true, stroke: () => colour("--axis"), width: 1 }, font: "11px system-ui, sans-serif", gap: 4, filter: (plot, splits) => splits };
    const options = {
      width: width(), height: height, padding: [8, 14, 0, 0], legend: { show: false },
      cursor: { sync: { key: "curves" }, y: false, points: { show: false }, drag: { x: true, y: false, dist: 6 } },
      scales: {
        x: { time: false, range: (plot, low, high) => (low === x[0] && high === x[last] ? told.x : [low, high]) },
        y: { distr: told.log ? 3 : 1, range: () => told.y }
      },
      axes: [
        { ...axis, size: 24, splits: (plot, index, low, high) => sizeTicks(told, low, high, width() - 58), values: (plot, splits) => splits.map((place) => told.sizes[x.indexOf(place)][1]) },
        { ...axis, size: 44, splits: () => told.ticks, values: (plot, splits) => splits.map(tick) }
      ],
      series: [{}].concat(told.lines.map((line) => ({
        label: line.name, show: !hidden.has(line.name), spanGaps: true, points: { show: false }, width: 1.6,
        dash: line.style[2] ? line.style[2].split(" ").map(Number) : undefined,
        stroke: () => colour(line.style[0] < 7 ? "--s" + line.style[0] : "--axis")
      }))),
      hooks: {
        draw: [(plot) => told.lines.forEach((_, k) => drawLine(plot, told, k))],
        setCursor: [(plot) => read(told, reading, plot.cursor.left < 0 ? null : plot.cursor.idx)]
      }
    };
    figure.classList.add("live");
    figure.tabIndex = 0;
    figure.setAttribute("role", "group");
    figure.setAttribute("aria-label", picture.getAttribute("aria-label") + "; arrow keys read it");
    const plot = new uPlot(options, [x].concat(told.lines.map((line) => line.values)), figure);
    figure.append(reading);
    read(told, reading, null);
    figure.addEventListener("keydown", function (event) {
      const now = plot.cursor.left < 0 || plot.cursor.idx === null ? -1 : plot.cursor.idx;
      const next = { ArrowRight: now + 1, ArrowLeft: now < 0 ? last : now - 1, Home: 0, End: last }[event.key];
      if (next === undefined || next < 0 || next > last) { return; }
      event.preventDefault();
      reading.setAttribute("aria-live", "polite");
      plot.setCursor({ left: plot.valToPos(x[next], "x"), top: 1 }, true, true);
    });
    new ResizeObserver(function () {
      if (width() > 0 && Math.abs(width() - plot.width) > 1) { plot.setSize({ width: width(), height: height }); }
    }).observe(figure);
    live.set(figure, { plot: plot, told: told });
  }

  function toggled(button, name) {
    const shows = hidden.has(name);
    if (shows) { hidden.delete(name); } else { hidden.add(name); }
    for (const one of document.querySelectorAll(".legend li")) {
      if (one.dataset.line === name) { one.firstElementChild.setAttribute("aria-pressed", String(shows)); }
    }
    for (const { plot, told } of live.values()) {
      told.lines.forEach(function (line, k) { if (line.name === name) { plot.setSeries(k + 1, { show: shows }); } });
    }
  }

  const drawings = document.querySelectorAll("figure[data-curves]");
  const seen = new IntersectionObserver(function (entries) {
    for (const entry of entries) {
      if (entry.isIntersecting) { seen.unobserve(entry.target); enliven(entry.target); }
    }
  }, { rootMargin: "300px" });
  for (const figure of drawings) { seen.observe(figure); }
  if (drawings.length) {
    for (const item of document.querySelectorAll(".legend li[data-line]")) {
      const made = button("", function () { toggled(made, item.dataset.line); });
      made.setAttribute("aria-pressed", "true");
      made.append(...item.childNodes);
      item.append(made);
    }
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () {
    for (const { plot } of live.values()) { plot.redraw(); }
  });

  addEventListener("hashchange", openLinked);
  openLinked();
})();

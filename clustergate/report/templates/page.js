"use strict";
// The page is complete without this: it adds a filter, buttons that copy, and opens what is linked to.
(function () {
  const cases = Array.from(document.querySelectorAll("details.case"));
  const rows = Array.from(document.querySelectorAll("table.filtered tbody tr"));
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
    const words = word.split(/\s+/);
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(function (one) { return text.includes(one); });
    }
  }

  function openLinked() {
    const target = document.getElementById(location.hash.slice(1));
    if (target && target.classList.contains("case")) { target.open = true; target.scrollIntoView(); }
  }

  if (tools) {
    const input = document.createElement("input");
    input.type = "search";
    input.placeholder = tools.dataset.filters || "filter: a benchmark, a metric, a stack, a verdict";
    input.setAttribute("aria-label", "filter the figures");
    input.addEventListener("input", function () { filter(input.value.trim().toLowerCase()); });
    tools.append(input);
    if (cases.length) tools.append(
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
  addEventListener("hashchange", openLinked);
  openLinked();
})();

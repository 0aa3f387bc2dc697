// Elements that stick out of so many pixels, but for what may be scrolled by itself, or ends in an ellipsis.
const own = (s) => /auto|scroll/.test(s.overflowX) || s.textOverflow === "ellipsis";
const scrolls = (e) => e && (e !== document.body && own(getComputedStyle(e)) || scrolls(e.parentElement));
return [...document.querySelectorAll("body *")]
  .filter((e) => e.getBoundingClientRect().right > arguments[0] + 1 && e.getClientRects().length && !scrolls(e) && !e.closest("svg, .unseen"))
  .map((e) => e.outerHTML.slice(0, 120)).slice(0, 5);

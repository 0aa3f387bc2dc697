// Elements that stick out of so many pixels, but for what may be scrolled by itself.
const scrolls = (e) => e && (e !== document.body && /auto|scroll/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
return [...document.querySelectorAll("body *")]
  .filter((e) => e.getBoundingClientRect().right > arguments[0] + 1 && e.getClientRects().length && !scrolls(e) && !e.closest("svg, .unseen"))
  .map((e) => e.outerHTML.slice(0, 120)).slice(0, 5);
